import { Controller, Get, Inject, Param, Query, UsePipes } from '@nestjs/common';
import { type Page, pageOf } from '../paging/page.js';
import { found } from '../problem/found.js';
import { queryPipe } from '../problem/query-pipe.js';
import { modelViewer, type ModelView } from './model.view.js';
import { ModelsQuery } from './models.dto.js';
import type { VerdictItem } from '#domain/wire/index.js';
import { VerdictsService } from '../verdicts/verdicts.service.js';
import { ModelsRepository } from './models.repository.js';

const VERDICTS = '/verdicts';

@Controller('admin/models')
@UsePipes(queryPipe())
export class ModelsController {
  readonly #models: ModelsRepository;
  readonly #verdicts: VerdictsService;

  constructor(
    @Inject(ModelsRepository) models: ModelsRepository,
    @Inject(VerdictsService) verdicts: VerdictsService,
  ) {
    this.#models = models;
    this.#verdicts = verdicts;
  }

  @Get()
  async list(@Query() query: ModelsQuery): Promise<Page<ModelView>> {
    const read = await this.#models.page(query);
    return pageOf(read.models, query.limit, (row) => [row.model_key, row.worker_id], modelViewer(read));
  }

  /** How the model could be placed on each worker that has it, now. */
  @Get(':key/verdicts')
  verdicts(@Param('key') key: string): Promise<Page<VerdictItem>> {
    return this.#verdictsOf(key);
  }

  /** A key holds slashes, encoded or as they are. One item per worker that has the model. */
  @Get('*')
  async one(@Param('*') key: string): Promise<Page<ModelView> | Page<VerdictItem>> {
    if (key.endsWith(VERDICTS)) return this.#verdictsOf(key.slice(0, -VERDICTS.length));
    const read = await this.#models.find(key);
    found(read.models[0], 'model', key);
    return { items: read.models.map(modelViewer(read)) };
  }

  async #verdictsOf(key: string): Promise<Page<VerdictItem>> {
    return { items: await this.#verdicts.of(key) };
  }
}

import { Controller, Get, Inject, Param, Query, UsePipes } from '@nestjs/common';
import { type Page, pageOf } from '../paging/page.js';
import { found } from '../problem/found.js';
import { queryPipe } from '../problem/query-pipe.js';
import { modelViewer, type ModelView } from './model.view.js';
import { ModelsQuery } from './models.dto.js';
import { ModelsRepository } from './models.repository.js';

@Controller('admin/models')
@UsePipes(queryPipe())
export class ModelsController {
  readonly #models: ModelsRepository;

  constructor(@Inject(ModelsRepository) models: ModelsRepository) {
    this.#models = models;
  }

  @Get()
  async list(@Query() query: ModelsQuery): Promise<Page<ModelView>> {
    const read = await this.#models.page(query);
    return pageOf(read.models, query.limit, (row) => [row.model_key, row.worker_id], modelViewer(read));
  }

  /** A key holds slashes, encoded or as they are. One item per worker that has the model. */
  @Get('*')
  async one(@Param('*') key: string): Promise<Page<ModelView>> {
    const read = await this.#models.find(key);
    found(read.models[0], 'model', key);
    return { items: read.models.map(modelViewer(read)) };
  }
}

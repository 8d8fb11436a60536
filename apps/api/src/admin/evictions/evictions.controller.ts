import { Controller, Get, Inject, Query, UsePipes } from '@nestjs/common';
import { type Page, pageOf } from '../paging/page.js';
import { queryPipe } from '../problem/query-pipe.js';
import { evictionView, type EvictionView } from './eviction.view.js';
import { EvictionsQuery } from './evictions.dto.js';
import { EvictionsRepository } from './evictions.repository.js';

@Controller('admin/evictions')
@UsePipes(queryPipe())
export class EvictionsController {
  readonly #evictions: EvictionsRepository;

  constructor(@Inject(EvictionsRepository) evictions: EvictionsRepository) {
    this.#evictions = evictions;
  }

  @Get()
  async list(@Query() query: EvictionsQuery): Promise<Page<EvictionView>> {
    const rows = await this.#evictions.page(query);
    return pageOf(rows, query.limit, (row) => [row.position], evictionView);
  }
}

import { Controller, Get, Inject, Param, Query, UsePipes } from '@nestjs/common';
import { type Page, pageOf } from '../paging/page.js';
import { queryPipe } from '../problem/query-pipe.js';
import { HistoryQuery } from './history.dto.js';
import { HistoryRepository } from './history.repository.js';
import { loadView, type LoadView, servingView, type ServingView } from './history.view.js';

@Controller('admin/history')
@UsePipes(queryPipe())
export class HistoryController {
  readonly #history: HistoryRepository;

  constructor(@Inject(HistoryRepository) history: HistoryRepository) {
    this.#history = history;
  }

  /** Of one model on one worker; the key holds slashes, encoded or as they are. */
  @Get(':worker/*')
  async list(
    @Param('worker') workerId: string,
    @Param('*') modelKey: string,
    @Query() query: HistoryQuery,
  ): Promise<Page<LoadView> | Page<ServingView>> {
    const pair = { workerId, modelKey };
    const keyOf = (row: { position: string }) => [row.position];
    if (query.of === 'serving') {
      return pageOf(await this.#history.serving(pair, query), query.limit, keyOf, servingView);
    }
    return pageOf(await this.#history.loads(pair, query), query.limit, keyOf, loadView);
  }
}

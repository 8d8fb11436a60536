import { Controller, Get, Inject, Param, Query, UsePipes } from '@nestjs/common';
import { type ExplainedCall, ExplainService } from '../explain/explain.service.js';
import { type Page, pageOf } from '../paging/page.js';
import { found } from '../problem/found.js';
import { queryPipe } from '../problem/query-pipe.js';
import { callView, type CallView } from './call.view.js';
import { CallsQuery } from './calls.dto.js';
import { callKey, CallsRepository } from './calls.repository.js';

@Controller('admin/calls')
@UsePipes(queryPipe())
export class CallsController {
  readonly #calls: CallsRepository;
  readonly #explain: ExplainService;

  constructor(
    @Inject(CallsRepository) calls: CallsRepository,
    @Inject(ExplainService) explain: ExplainService,
  ) {
    this.#calls = calls;
    this.#explain = explain;
  }

  @Get()
  async list(@Query() query: CallsQuery): Promise<Page<CallView>> {
    const rows = await this.#calls.page(query);
    return pageOf(rows, query.limit, (row) => callKey(query, row), callView);
  }

  @Get(':id')
  async one(@Param('id') id: string): Promise<CallView> {
    return callView(found(await this.#calls.find(id), 'call', id));
  }

  @Get(':id/explain')
  async explain(@Param('id') id: string): Promise<ExplainedCall> {
    return this.#explain.explain(found(await this.#calls.find(id), 'call', id));
  }
}

import { Controller, Get, Inject, Param, Query, UsePipes } from '@nestjs/common';
import { type Page, pageOf } from '../paging/page.js';
import { found } from '../problem/found.js';
import { queryPipe } from '../problem/query-pipe.js';
import { decisionDetail, type DecisionDetail, decisionView, type DecisionView } from './decision.view.js';
import { DecisionsQuery } from './decisions.dto.js';
import { DecisionsRepository } from './decisions.repository.js';

@Controller('admin/decisions')
@UsePipes(queryPipe())
export class DecisionsController {
  readonly #decisions: DecisionsRepository;

  constructor(@Inject(DecisionsRepository) decisions: DecisionsRepository) {
    this.#decisions = decisions;
  }

  @Get()
  async list(@Query() query: DecisionsQuery): Promise<Page<DecisionView>> {
    const rows = await this.#decisions.page(query);
    return pageOf(rows, query.limit, (row) => [row.position], decisionView);
  }

  @Get(':id')
  async one(@Param('id') id: string): Promise<DecisionDetail> {
    const row = found(await this.#decisions.find(id), 'decision', id);
    return decisionDetail(row, found(await this.#decisions.working(id), 'decision', id));
  }
}

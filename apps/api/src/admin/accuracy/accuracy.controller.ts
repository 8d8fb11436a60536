import { Controller, Get, Inject, Query, UsePipes } from '@nestjs/common';
import { type Page, pageOf } from '../paging/page.js';
import { queryPipe } from '../problem/query-pipe.js';
import { AccuracyQuery } from './accuracy.dto.js';
import { accuracyKey, AccuracyRepository } from './accuracy.repository.js';
import { accuracyView, type AccuracyView } from './accuracy.view.js';

@Controller('admin/accuracy')
@UsePipes(queryPipe())
export class AccuracyController {
  readonly #accuracy: AccuracyRepository;

  constructor(@Inject(AccuracyRepository) accuracy: AccuracyRepository) {
    this.#accuracy = accuracy;
  }

  @Get()
  async list(@Query() query: AccuracyQuery): Promise<Page<AccuracyView>> {
    return pageOf(await this.#accuracy.page(query), query.limit, accuracyKey, accuracyView);
  }
}

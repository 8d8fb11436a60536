import { Controller, Get, Inject, Query, UsePipes } from '@nestjs/common';
import { ListQuery } from '../paging/list-query.dto.js';
import { type Page, pageOf } from '../paging/page.js';
import { queryPipe } from '../problem/query-pipe.js';
import { workerViewer, type WorkerView } from './worker.view.js';
import { WorkersRepository } from './workers.repository.js';

@Controller('admin/workers')
@UsePipes(queryPipe())
export class WorkersController {
  readonly #workers: WorkersRepository;

  constructor(@Inject(WorkersRepository) workers: WorkersRepository) {
    this.#workers = workers;
  }

  @Get()
  async list(@Query() query: ListQuery): Promise<Page<WorkerView>> {
    const read = await this.#workers.page(query);
    return pageOf(read.workers, query.limit, (row) => [row.worker_id], workerViewer(read));
  }
}

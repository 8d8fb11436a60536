import { Controller, Get, Inject, Param, Query, UsePipes } from '@nestjs/common';
import { type Page, pageOf } from '../paging/page.js';
import { found } from '../problem/found.js';
import { queryPipe } from '../problem/query-pipe.js';
import { residentView, type ResidentView } from './resident.view.js';
import { ResidentsQuery } from './residents.dto.js';
import { ResidentsRepository } from './residents.repository.js';

@Controller('admin/residents')
@UsePipes(queryPipe())
export class ResidentsController {
  readonly #residents: ResidentsRepository;

  constructor(@Inject(ResidentsRepository) residents: ResidentsRepository) {
    this.#residents = residents;
  }

  @Get()
  async list(@Query() query: ResidentsQuery): Promise<Page<ResidentView>> {
    const rows = await this.#residents.page(query);
    return pageOf(rows, query.limit, (row) => [row.position], residentView);
  }

  @Get(':id')
  async one(@Param('id') id: string): Promise<ResidentView> {
    return residentView(found(await this.#residents.find(id), 'resident', id));
  }
}

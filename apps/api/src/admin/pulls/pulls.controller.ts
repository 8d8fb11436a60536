import { Body, Controller, Get, HttpCode, Inject, Param, Post, Query, UsePipes } from '@nestjs/common';
import { IsString, Length } from 'class-validator';
import type { PullItem, WireWritten } from '#domain/wire/index.js';
import { By } from '../access/admin.guard.js';
import { OptionalText } from '../paging/list-query.dto.js';
import { type Page, pageOf } from '../paging/page.js';
import { found } from '../problem/found.js';
import { queryPipe } from '../problem/query-pipe.js';
import { PullsQuery, PullsRepository, pullView } from './pulls.repository.js';
import { PullsService } from './pulls.service.js';

export class RequestPull {
  /** `owner/repo`, `owner/repo:FILE` or `owner/repo:QUANT`. */
  @IsString()
  @Length(3, 500)
  source!: string;

  /** The worker whose disk it goes to; may be left out where there is one. */
  @OptionalText(200)
  worker?: string;
}

@Controller('admin/pulls')
@UsePipes(queryPipe())
export class PullsController {
  readonly #pulls: PullsRepository;
  readonly #service: PullsService;

  constructor(@Inject(PullsRepository) pulls: PullsRepository, @Inject(PullsService) service: PullsService) {
    this.#pulls = pulls;
    this.#service = service;
  }

  @Get()
  async list(@Query() query: PullsQuery): Promise<Page<PullItem>> {
    return pageOf(await this.#pulls.page(query), query.limit, (row) => [row.position], pullView);
  }

  @Get(':id')
  async one(@Param('id') id: string): Promise<PullItem> {
    return pullView(found(await this.#pulls.find(id), 'pull', id));
  }

  @Post()
  @HttpCode(202)
  request(@Body() asked: RequestPull, @By() by: string): Promise<PullItem & WireWritten> {
    return this.#service.request(asked.source, asked.worker, by);
  }
}

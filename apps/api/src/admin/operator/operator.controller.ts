import {
  Body,
  Controller,
  Get,
  Headers,
  HttpCode,
  Inject,
  Param,
  Post,
  Query,
  UsePipes,
} from '@nestjs/common';
import type { OperatorAccepted, OperatorItem } from '#domain/wire/index.js';
import { By } from '../access/admin.guard.js';
import { type Page, pageOf } from '../paging/page.js';
import { found } from '../problem/found.js';
import { queryPipe } from '../problem/query-pipe.js';
import { ActionsQuery, RequestAction } from './operator.dto.js';
import { actionView, OperatorRepository } from './operator.repository.js';
import { OperatorService } from './operator.service.js';
import { fail } from '../problem/fail.js';

const MOST_KEY = 200;

/** Left out, empty or a text of reasonable length. */
function keyIn(header: string | undefined): string | undefined {
  if (header === undefined || header === '') return undefined;
  if (header.length <= MOST_KEY) return header;
  const message = `An Idempotency-Key has at most ${MOST_KEY} characters.`;
  fail('invalid_request', message, 'Idempotency-Key');
}

@Controller('admin/operator/actions')
@UsePipes(queryPipe())
export class OperatorController {
  readonly #actions: OperatorRepository;
  readonly #service: OperatorService;

  constructor(
    @Inject(OperatorRepository) actions: OperatorRepository,
    @Inject(OperatorService) service: OperatorService,
  ) {
    this.#actions = actions;
    this.#service = service;
  }

  @Get()
  async list(@Query() query: ActionsQuery): Promise<Page<OperatorItem>> {
    return pageOf(await this.#actions.page(query), query.limit, (row) => [row.position], actionView);
  }

  @Get(':id')
  async one(@Param('id') id: string): Promise<OperatorItem> {
    return actionView(found(await this.#actions.find(id), 'operator/action', id));
  }

  @Post()
  @HttpCode(202)
  request(
    @Body() asked: RequestAction,
    @By() by: string,
    @Headers('idempotency-key') key?: string,
  ): Promise<OperatorAccepted> {
    return this.#service.request(asked, by, keyIn(key));
  }
}

/** `evict` for short. */
@Controller('admin/residents')
export class EvictController {
  readonly #service: OperatorService;

  constructor(@Inject(OperatorService) service: OperatorService) {
    this.#service = service;
  }

  @Post(':id/evict')
  @HttpCode(202)
  evict(
    @Param('id') id: string,
    @By() by: string,
    @Headers('idempotency-key') key?: string,
  ): Promise<OperatorAccepted> {
    return this.#service.request(
      Object.assign(new RequestAction(), { action: 'evict', target: id }),
      by,
      keyIn(key),
    );
  }
}

import { Controller, Get, Inject, Query, Req, UsePipes } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsIn, IsInt, IsOptional, Matches, Max, Min } from 'class-validator';
import type { FastifyRequest } from 'fastify';
import type { LiveHub } from '../../live/socket/live-hub.js';
import { OptionalText } from '../paging/list-query.dto.js';
import { POSITION } from '../paging/page.js';
import { queryPipe } from '../problem/query-pipe.js';
import {
  TELEMETRY_TABLES,
  type TelemetryPage,
  TelemetryService,
  type TelemetryTable,
} from './telemetry.service.js';

export const LIVE_HUB = Symbol('live hub');

const IS_POSITION = { message: 'since must be a position, as an answer before has it' };
const MOST_WAIT_SECONDS = 120;

export class TelemetryQuery {
  @IsIn(Object.keys(TELEMETRY_TABLES))
  table!: TelemetryTable;

  /** The `position` of the answer before; from the beginning of the log when left out. */
  @IsOptional()
  @Matches(POSITION, IS_POSITION)
  since?: string;

  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(500)
  limit: number = 100;
}

export class CounterQuery {
  /** The `position` of the answer before. */
  @IsOptional()
  @Matches(POSITION, IS_POSITION)
  since?: string;

  /** Seconds that it may wait for the next event. */
  @OptionalText(10)
  @Matches(/^\d{1,3}(\.\d+)?$/, { message: 'seconds must be a number such as 60' })
  seconds: string = '60';
}

/** For machines that follow what happens: a counter that moves on events alone, and rows behind a cursor. */
@Controller('admin/telemetry')
@UsePipes(queryPipe())
export class TelemetryController {
  readonly #hub: LiveHub;
  readonly #service: TelemetryService;

  constructor(@Inject(LIVE_HUB) hub: LiveHub, @Inject(TelemetryService) service: TelemetryService) {
    this.#hub = hub;
    this.#service = service;
  }

  @Get()
  rows(@Query() query: TelemetryQuery): Promise<TelemetryPage> {
    return this.#service.rows(query.table, BigInt(query.since ?? 0), query.limit);
  }

  /** Answers at once when the counter has moved, else when it does or the time has passed. */
  @Get('state')
  async state(
    @Query() query: CounterQuery,
    @Req() request: FastifyRequest,
  ): Promise<{ readonly position: string; readonly changed: boolean }> {
    const ms = Math.min(MOST_WAIT_SECONDS, Number(query.seconds)) * 1000;
    await this.#hub.start();
    const since = query.since === undefined ? undefined : BigInt(query.since);
    if (since === undefined) return { position: this.#hub.position.toString(), changed: true };
    const left = new AbortController();
    request.raw.once('close', () => left.abort());
    const changed = await this.#hub.waitPast(since, ms, left.signal);
    return { position: this.#hub.position.toString(), changed };
  }
}

import { Controller, Get, Inject, Query, UsePipes } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsInt, IsString, Length, Min } from 'class-validator';
import type { BerthEvent } from '#domain/events/index.js';
import { workerId } from '#domain/ids.js';
import type { StateAt } from '#domain/wire/index.js';
import type { EventLog } from '#events/event-log.js';
import { Fleet } from '../../fleet/fleet.js';
import { EVENT_LOG } from '../commands/command-log.js';
import { ListQuery, OptionalText } from '../paging/list-query.dto.js';
import { badCursor, type Page, POSITION } from '../paging/page.js';
import { queryPipe } from '../problem/query-pipe.js';
import { type Moment, PastStates } from './past-states.js';
import { fail } from '../problem/fail.js';

export class StateQuery {
  /** A position of the log, or an ISO time. */
  @IsString()
  @Length(1, 40)
  at!: string;

  @OptionalText(200)
  worker?: string;
}

export class EventsQuery extends ListQuery {
  @IsString()
  @Length(1, 600)
  stream!: string;

  /** The revision to begin with. */
  @Type(() => Number)
  @IsInt()
  @Min(0)
  from: number = 0;

  @OptionalText(100)
  type?: string;
}

export interface EventItem {
  readonly id: string;
  readonly type: string;
  readonly revision: number;
  readonly position: string;
  readonly at: string;
  readonly by: string;
  readonly correlationId: string;
  readonly causationId: string;
  readonly data: unknown;
}

/** Events looked at for one page, where a type is wanted that is rare. */
const MOST_LOOKED_AT = 5000;

/** The log itself: what it says, and what stood at any moment of it. */
@Controller('admin')
@UsePipes(queryPipe())
export class LogController {
  readonly #log: Pick<EventLog, 'readForwards'>;
  readonly #fleet: Fleet;
  readonly #past: PastStates;

  constructor(@Inject(EVENT_LOG) log: Pick<EventLog, 'readForwards'>, @Inject(Fleet) fleet: Fleet) {
    this.#log = log;
    this.#fleet = fleet;
    this.#past = new PastStates(log);
  }

  @Get('state')
  state(@Query() query: StateQuery): Promise<StateAt> {
    const workers = query.worker === undefined ? [...this.#fleet.workers.keys()] : [workerId(query.worker)];
    return this.#past.at(workers, momentIn(query.at));
  }

  @Get('events')
  async events(@Query() query: EventsQuery): Promise<Page<EventItem>> {
    const from = query.after === undefined ? query.from : revisionIn(query.after);
    const items: EventItem[] = [];
    let looked = 0;
    const options = { fromRevision: from, maxCount: MOST_LOOKED_AT };
    for await (const recorded of this.#log.readForwards<BerthEvent>(query.stream, options)) {
      if (items.length === query.limit) return { items, next: String(recorded.revision) };
      looked += 1;
      const { event, metadata } = recorded;
      if (query.type !== undefined && event.type !== query.type) {
        if (looked === MOST_LOOKED_AT) return { items, next: String(recorded.revision + 1) };
        continue;
      }
      items.push({
        id: recorded.id,
        type: event.type,
        revision: recorded.revision,
        position: recorded.position.commit.toString(),
        at: metadata.at,
        by: metadata.by,
        correlationId: metadata.$correlationId,
        causationId: metadata.$causationId,
        data: event.data,
      });
    }
    return { items };
  }
}

function momentIn(at: string): Moment {
  if (POSITION.test(at)) return { position: BigInt(at) };
  const timeMs = Date.parse(at);
  if (Number.isFinite(timeMs)) return { timeMs };
  const message = 'at must be a position of the log or an ISO time, such as 2026-01-31T12:00:00Z.';
  fail('invalid_request', message, 'at');
}

function revisionIn(after: string): number {
  if (/^\d{1,12}$/.test(after)) return Number(after);
  throw badCursor();
}

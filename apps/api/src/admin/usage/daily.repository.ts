import { Inject, Injectable } from '@nestjs/common';
import { sql } from 'kysely';
import type { DailyItem } from '#domain/wire/index.js';
import { VIEWS_SCHEMA } from '#schema/connect.js';
import { ViewsReader } from '../views/views-reader.js';
import { utcDay } from './usage.repository.js';

/** One row per day of a range in which anything happened, newest first. Only that range of each table is looked at. */
export const dailyRows = (from: string, to: string) => {
  const within = (column: string) => sql`${sql.ref(column)} >= ${from} and ${sql.ref(column)} < ${to}`;
  // Each part counts one kind of thing; the columns that it does not have are 0.
  return sql<Omit<DailyItem, 'day'> & { day: string }>`
    select day, sum(calls)::bigint as calls, sum(completed)::bigint as completed, sum(failed)::bigint as failed,
      sum(abandoned)::bigint as abandoned, sum(refused)::bigint as refused,
      sum(prompt_tokens)::bigint as "promptTokens", sum(output_tokens)::bigint as "outputTokens",
      sum(waited_ms)::bigint as "waitedMs", sum(loads)::bigint as loads, sum(load_seconds) as "loadSeconds",
      sum(failed_loads)::bigint as "failedLoads", sum(evictions)::bigint as evictions,
      sum(decisions)::bigint as decisions, sum(refusals)::bigint as refusals
    from (
      select ${utcDay('hour')} as day, calls, completed, failed, abandoned, refused, prompt_tokens, output_tokens, waited_ms,
        0 as loads, 0::double precision as load_seconds, 0 as failed_loads, 0 as evictions, 0 as decisions, 0 as refusals
      from ${sql.id(VIEWS_SCHEMA, 'usage_hours')} where ${within('hour')}
      union all
      select ${utcDay('ready_at')}, 0, 0, 0, 0, 0, 0, 0, 0,
        1, coalesce(extract(epoch from ready_at - load_started_at)::double precision, 0), 0, 0, 0, 0
      from ${sql.id(VIEWS_SCHEMA, 'residents')} where ${within('ready_at')}
      union all
      select ${utcDay('ended_at')}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0
      from ${sql.id(VIEWS_SCHEMA, 'evictions')} where state = 'done' and ${within('ended_at')}
      union all
      select ${utcDay('decided_at')}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        case when state = 'failed' then 1 else 0 end, 0,
        case when admitted then 1 else 0 end, case when admitted then 0 else coalesce(refusals, 1) end
      from ${sql.id(VIEWS_SCHEMA, 'decisions')} where ${within('decided_at')}
    ) happened group by day order by day desc`;
};

@Injectable()
export class DailyRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  rows(from: string, to: string): Promise<readonly DailyItem[]> {
    return this.#views.read(async (db) => (await dailyRows(from, to).execute(db)).rows);
  }

  /** When the first thing happened; undefined before it. */
  first(): Promise<string | undefined> {
    return this.#views.read(async (db) => {
      const call = await db
        .selectFrom('usage_hours')
        .select((eb) => eb.fn.min('hour').as('at'))
        .executeTakeFirst();
      const decision = await db
        .selectFrom('decisions')
        .select((eb) => eb.fn.min('decided_at').as('at'))
        .executeTakeFirst();
      return [call?.at, decision?.at].flatMap((at) => at ?? []).sort()[0];
    });
  }
}

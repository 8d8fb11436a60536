import { Inject, Injectable } from '@nestjs/common';
import { sql } from 'kysely';
import type { DailyItem } from '#domain/wire/index.js';
import type { ViewsDb } from '#schema/connect.js';
import { ViewsReader } from '../views/views-reader.js';

/** One row per day of a range in which anything happened, newest first. */
export const dailyRows = (db: ViewsDb, from: string, to: string) => {
  const calls = db
    .selectFrom('usage_days')
    .where('day', '>=', from)
    .where('day', '<', to)
    .groupBy('day')
    .select((eb) => [
      'day',
      ...(
        [
          'calls',
          'completed',
          'failed',
          'abandoned',
          'refused',
          'prompt_tokens',
          'output_tokens',
          'waited_ms',
        ] as const
      ).map((name) => sql<number>`sum(${eb.ref(name)})::bigint`.as(name)),
    ]);
  const rest = db.selectFrom('days').where('day', '>=', from).where('day', '<', to).selectAll();
  const or0 = (name: string) => sql<number>`coalesce(${sql.ref(name)}, 0)`;
  return db
    .selectFrom(calls.as('c'))
    .fullJoin(rest.as('d'), 'd.day', 'c.day')
    .select([
      sql<string>`coalesce(c.day, d.day)`.as('day'),
      or0('calls').as('calls'),
      or0('completed').as('completed'),
      or0('failed').as('failed'),
      or0('abandoned').as('abandoned'),
      or0('refused').as('refused'),
      or0('prompt_tokens').as('promptTokens'),
      or0('output_tokens').as('outputTokens'),
      or0('waited_ms').as('waitedMs'),
      or0('loads').as('loads'),
      sql<number>`coalesce(load_ms, 0)::double precision / 1000`.as('loadSeconds'),
      or0('failed_loads').as('failedLoads'),
      or0('evictions').as('evictions'),
      or0('decisions').as('decisions'),
      or0('refusals').as('refusals'),
    ])
    .orderBy('day', 'desc');
};

const firstDay = (db: ViewsDb, table: 'days' | 'usage_days') =>
  db.selectFrom(table).select((eb) => eb.fn.min('day').as('at'));

@Injectable()
export class DailyRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  rows(from: string, to: string): Promise<readonly DailyItem[]> {
    return this.#views.read((db) => dailyRows(db, from, to).execute());
  }

  /** When the first thing happened; undefined before it. */
  first(): Promise<string | undefined> {
    return this.#views.read(async (db) => {
      const call = await firstDay(db, 'usage_days').executeTakeFirst();
      const decision = await firstDay(db, 'days').executeTakeFirst();
      return [call?.at, decision?.at].flatMap((at) => at ?? []).sort()[0];
    });
  }
}

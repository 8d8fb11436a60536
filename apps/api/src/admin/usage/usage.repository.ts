import { Inject, Injectable } from '@nestjs/common';
import { type RawBuilder, sql } from 'kysely';
import type { ViewsDb } from '#schema/connect.js';
import { USAGE_COUNTS, type UsageCount } from '#schema/usage-counts.js';
import { decodeCursor } from '../paging/page.js';
import { ViewsReader } from '../views/views-reader.js';
import type { UsageQuery } from './usage.dto.js';

/** How far back is summed when no `since` says. */
const DEFAULT_DAYS = 30;
export const DAY_MS = 86_400_000;

export type UsageRow = { readonly [Sum in UsageCount]: number } & {
  readonly time?: string;
  readonly model_key?: string;
  readonly key_id?: string;
};

/** The parts of a row's cursor, in the order of the list. */
export const usageKey = (row: UsageRow): readonly string[] => [
  row.time ?? '',
  row.model_key ?? '',
  row.key_id ?? '',
];

/** The UTC day in which a time lies, as the time at which it begins. */
export const utcDay = (column: string): RawBuilder<unknown> =>
  sql`date_trunc('day', ${sql.ref(column)} at time zone 'UTC') at time zone 'UTC'`;

const time = (query: UsageQuery): RawBuilder<unknown> | undefined => {
  if (query.by.includes('hour')) return sql`hour`;
  if (query.by.includes('day')) return utcDay('hour');
  return undefined;
};

/** Latest first, then by model and key; the hours are summed as they are asked for. */
export function usagePage(db: ViewsDb, query: UsageQuery, nowMs: number) {
  const since = query.since ?? new Date(nowMs - DEFAULT_DAYS * DAY_MS).toISOString();
  const at = time(query);
  const groups: readonly (readonly [string, RawBuilder<unknown>])[] = [
    ...(at ? [['time', at] as const] : []),
    ...(query.by.includes('model') ? [['model_key', sql`model_key`] as const] : []),
    ...(query.by.includes('key') ? [['key_id', sql`key_id`] as const] : []),
  ];
  let rows = db.selectFrom('usage_hours').where('hour', '>=', since);
  if (query.until !== undefined) rows = rows.where('hour', '<', query.until);
  if (query.model !== undefined) rows = rows.where('model_key', '=', query.model);
  if (query.key !== undefined) rows = rows.where('key_id', '=', query.key);
  const summed = rows
    .select(groups.map(([name, group]) => group.as(name)))
    .select(USAGE_COUNTS.map((sum) => sql<number>`sum(${sql.ref(sum)})::bigint`.as(sum)))
    .groupBy(groups.map(([, group]) => sql`${group}`));
  let page = db.selectFrom(summed.as('u')).selectAll();
  if (query.after !== undefined) page = page.where(behind(groups, decodeCursor(query.after, 3)));
  for (const [name] of groups) page = page.orderBy(sql.ref(name), name === 'time' ? 'desc' : 'asc');
  return page.limit(query.limit + 1);
}

/** After the last row of the page before: times fall, names rise. */
function behind(groups: readonly (readonly [string, unknown])[], [at, model, key]: readonly string[]) {
  const values: Readonly<Record<string, string | undefined>> = { time: at, model_key: model, key_id: key };
  const names = groups.filter(([name]) => name !== 'time').map(([name]) => name);
  const rising =
    names.length === 0
      ? sql<boolean>`false`
      : sql<boolean>`(${sql.join(names.map((name) => sql.ref(name)))}) > (${sql.join(names.map((name) => values[name]))})`;
  if (!groups.some(([name]) => name === 'time')) return rising;
  return sql<boolean>`(time < ${at} or (time = ${at} and ${rising}))`;
}

@Injectable()
export class UsageRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: UsageQuery): Promise<readonly UsageRow[]> {
    return this.#views.read(
      async (db) => (await usagePage(db, query, Date.now()).execute()) as unknown as readonly UsageRow[],
    );
  }

  async keyNames(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (ids.length === 0) return new Map();
    const rows = await this.#views.read((db) =>
      db.selectFrom('api_keys').select(['key_id', 'name']).where('key_id', 'in', ids).execute(),
    );
    return new Map(rows.flatMap(({ key_id, name }) => (name === null ? [] : [[key_id, name] as const])));
  }
}

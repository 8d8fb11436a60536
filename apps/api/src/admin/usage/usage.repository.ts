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

/** Latest first, then by model and key. Days and models are summed from whole days, and from hours where a range begins or ends within a day. */
export function usagePage(db: ViewsDb, query: UsageQuery, nowMs: number) {
  const byHour = query.by.includes('hour');
  const groups: readonly GroupName[] = [
    ...(byHour || query.by.includes('day') ? (['time'] as const) : []),
    ...(query.by.includes('model') ? (['model_key'] as const) : []),
    ...(query.by.includes('key') ? (['key_id'] as const) : []),
  ];
  const { sinceMs, untilMs } = rangeOf(query, nowMs);
  const range = { fromMs: sinceMs, toMs: untilMs };
  const counted = byHour ? hoursOfPage(db, query, groups, range) : days(db, query, sinceMs, untilMs);
  const summed = db
    .selectFrom(counted.as('c'))
    .select(groups)
    .select(USAGE_COUNTS.map((sum) => sql<number>`sum(${sql.ref(sum)})::bigint`.as(sum)))
    .groupBy(groups);
  let page = db.selectFrom(summed.as('u')).selectAll();
  if (query.after !== undefined) page = page.where(behind(groups, decodeCursor(query.after, 3)));
  for (const name of groups) page = page.orderBy(sql.ref(name), name === 'time' ? 'desc' : 'asc');
  return page.limit(query.limit + 1);
}

type GroupName = 'time' | 'model_key' | 'key_id';
interface Range {
  readonly fromMs: number;
  readonly toMs: number | undefined;
}

function rangeOf({ since, until }: UsageQuery, nowMs: number) {
  return {
    sinceMs: since === undefined ? dayOf(nowMs) - DEFAULT_DAYS * DAY_MS : Date.parse(since),
    untilMs: until === undefined ? undefined : Date.parse(until),
  };
}

const dayOf = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS;
const iso = (ms: number): string => new Date(ms).toISOString();

function hours(
  db: ViewsDb,
  query: UsageQuery,
  { fromMs, toMs }: Range,
  time: RawBuilder<string> = sql`hour`,
) {
  let rows = db
    .selectFrom('usage_hours')
    .select([time.as('time'), 'model_key', 'key_id', ...USAGE_COUNTS])
    .where('hour', '>=', iso(fromMs));
  if (toMs !== undefined) rows = rows.where('hour', '<', iso(toMs));
  if (query.model !== undefined) rows = rows.where('model_key', '=', query.model);
  if (query.key !== undefined) rows = rows.where('key_id', '=', query.key);
  return rows;
}

/** Whole days of the range, and the hours of those that it cuts. */
function days(db: ViewsDb, query: UsageQuery, sinceMs: number, untilMs: number | undefined) {
  const firstMs = dayOf(sinceMs - 1) + DAY_MS;
  const lastMs = untilMs === undefined ? undefined : Math.max(firstMs, dayOf(untilMs));
  let rows = db
    .selectFrom('usage_days')
    .select(['day as time', 'model_key', 'key_id', ...USAGE_COUNTS])
    .where('day', '>=', iso(firstMs));
  if (lastMs !== undefined) rows = rows.where('day', '<', iso(lastMs));
  if (query.model !== undefined) rows = rows.where('model_key', '=', query.model);
  if (query.key !== undefined) rows = rows.where('key_id', '=', query.key);
  const cut: readonly Range[] = [
    { fromMs: sinceMs, toMs: Math.min(firstMs, untilMs ?? firstMs) },
    { fromMs: lastMs ?? firstMs, toMs: untilMs ?? firstMs },
  ];
  return cut
    .filter(({ fromMs, toMs }) => toMs !== undefined && fromMs < toMs)
    .reduce((all, range) => all.unionAll(hours(db, query, range, utcDay)), rows);
}

const utcDay = sql<string>`date_trunc('day', hour at time zone 'UTC') at time zone 'UTC'`;

/** The hours that a page has rows of: later ones were on pages before, and earlier ones need not be summed. */
function hoursOfPage(db: ViewsDb, query: UsageQuery, groups: readonly GroupName[], range: Range) {
  const names = groups.filter((name) => name !== 'time');
  let rows = hours(db, query, range);
  let keys = rows
    .clearSelect()
    .select(['hour', ...names])
    .distinct();
  if (query.after !== undefined) {
    const after = decodeCursor(query.after, 3);
    const [time = ''] = after;
    rows = rows.where('hour', '<=', time);
    // The first is what an index can begin at.
    keys = keys.where('hour', '<=', time).where(behind(groups, after, 'hour'));
  }
  // Backwards along the index; in which order the rows of one hour come does not matter here.
  for (const name of ['hour', ...names] as const) keys = keys.orderBy(name, 'desc');
  const earliest = db
    .selectFrom(keys.limit(query.limit + 1).as('page'))
    .select((eb) => eb.fn.min('hour').as('hour'));
  return rows.where('hour', '>=', earliest);
}

/** After the last row of the page before: times fall, names rise. */
function behind(
  groups: readonly GroupName[],
  [at, model, key]: readonly string[],
  time: 'time' | 'hour' = 'time',
) {
  const values: Readonly<Record<string, string | undefined>> = { time: at, model_key: model, key_id: key };
  const names = groups.filter((name) => name !== 'time');
  const rising =
    names.length === 0
      ? sql<boolean>`false`
      : sql<boolean>`(${sql.join(names.map((name) => sql.ref(name)))}) > (${sql.join(names.map((name) => values[name]))})`;
  if (!groups.includes('time')) return rising;
  return sql<boolean>`(${sql.ref(time)} < ${at} or (${sql.ref(time)} = ${at} and ${rising}))`;
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

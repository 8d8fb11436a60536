import { type RawBuilder, sql } from 'kysely';
import { TABLES } from '#schema/db.types.js';
import type { Key, Row, ViewTable } from './row-set.js';

/** Statements over many rows at once: one round trip per table and batch, whatever the number of rows. */

/** The rows of these keys. */
export function selectByKeys<T extends ViewTable>(
  schema: string,
  table: T,
  keys: readonly Key[],
): RawBuilder<Row<T>> {
  const columns: readonly string[] = TABLES[table].key;
  const arrays = columns.map((column, part) => {
    const values = keys.map((key) => key[part] ?? '');
    return sql`${values}::${sql.raw(arrayType(table, column))}`;
  });
  const names = sql.join(columns.map((column) => sql.ref(column)));
  return sql<
    Row<T>
  >`select * from ${sql.id(schema, table)} where (${names}) in (select * from unnest(${sql.join(arrays)}))`;
}

/** Keys are text but for these. */
function arrayType(table: ViewTable, column: string): 'uuid[]' | 'timestamptz[]' | 'text[]' {
  if (column === 'event_id') return 'uuid[]';
  if (table === 'what_if_nights') return 'text[]';
  return column === 'hour' || column === 'day' ? 'timestamptz[]' : 'text[]';
}

/** Writes whole rows: a new key is inserted, a known one replaced. */
export function upsert<T extends ViewTable>(
  schema: string,
  table: T,
  rows: readonly Row<T>[],
): RawBuilder<unknown> {
  const key: readonly string[] = TABLES[table].key;
  const columns: readonly string[] = TABLES[table].columns;
  const names = sql.join(columns.map((column) => sql.ref(column)));
  const others = columns.filter((column) => !key.includes(column));
  const changes = sql.join(others.map((column) => sql`${sql.ref(column)} = excluded.${sql.ref(column)}`));
  return sql`insert into ${sql.id(schema, table)} (${names}) select ${names} from json_populate_recordset(null::${sql.id(schema, table)}, ${toJson(rows)}::json) on conflict (${sql.join(key.map((column) => sql.ref(column)))}) do update set ${changes}`;
}

/** What Postgres cannot hold in text: NUL, and half of a surrogate pair. JSON writes both as \u escapes. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/i;

/**
 * JSON that Postgres takes whatever an event holds: an engine's log line may carry a NUL or a broken character, and one
 * of them must not stop every view.
 */
export function toJson(rows: readonly unknown[]): string {
  const text = JSON.stringify(rows.map(withoutNulls));
  return UNSTORABLE.test(text) ? JSON.stringify(clean(rows)) : text;
}

/** A column that is not named becomes null: half of what a row of many stages would be. */
function withoutNulls(row: unknown): unknown {
  const kept: Record<string, unknown> = {};
  for (const name in row as Record<string, unknown>) {
    const value = (row as Record<string, unknown>)[name];
    if (value !== null) kept[name] = value;
  }
  return kept;
}

function clean(value: unknown): unknown {
  if (typeof value === 'string')
    return value.replaceAll('\u0000', '\uFFFD').replace(LONE_SURROGATE, '\uFFFD');
  if (Array.isArray(value)) return value.map(clean);
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) => [clean(name) as string, clean(part)]),
    );
  }
  return value;
}

// With the `u` flag a whole pair is one character outside this range: only halves match.
const LONE_SURROGATE = /[\uD800-\uDFFF]/gu;

import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import type { ReplayDifference } from '#domain/wire/index.js';
import { TABLES } from '#schema/db.types.js';
import type { ViewsDb } from '#schema/connect.js';
import type { ViewTable } from '../rows/row-set.js';
import { VIEW_TABLES } from '../rows/views.js';

/** One side of a comparison: a connection (in its own snapshot) and the schema there. */
export interface Side {
  readonly db: ViewsDb;
  readonly schema: string;
}

export interface Difference extends ReplayDifference {
  readonly table: ViewTable;
}

const FETCH_ROWS = 2000;

/**
 * Compares every row of every table. Tables whose digests agree are not read row by row.
 * @returns how many rows were compared.
 */
export async function compareViews(
  live: Side,
  folded: Side,
  onDifference: (difference: Difference) => void,
): Promise<number> {
  let rows = 0;
  for (const table of VIEW_TABLES) {
    const one = await digestOf(live, table);
    const other = await digestOf(folded, table);
    rows += Number(other.rows);
    if (isDeepStrictEqual(one, other)) continue;
    await compareRows(live, folded, table, onDifference);
  }
  return rows;
}

/** A sum of hashes does not depend on the order of rows. Columns by name: the two tables may have grown differently. */
async function digestOf(side: Side, table: ViewTable): Promise<{ rows: string; digest: string | null }> {
  const columns = sql.join(TABLES[table].columns.map((column) => sql.ref(column)));
  const found = await sql<{ rows: string; digest: string | null }>`
    select count(*)::text as rows, sum(hashtextextended(row(${columns})::text, 0))::text as digest
      from ${sql.id(side.schema, table)}`.execute(side.db);
  return found.rows[0] ?? { rows: '0', digest: null };
}

interface KeyedRow {
  readonly key: string;
  readonly row: string;
}

async function compareRows(
  live: Side,
  folded: Side,
  table: ViewTable,
  onDifference: (difference: Difference) => void,
): Promise<void> {
  const ones = rowsInOrder(live, table);
  const others = rowsInOrder(folded, table);
  let one = await ones.next();
  let other = await others.next();
  while (!one.done || !other.done) {
    const order = one.done
      ? 1
      : other.done
        ? -1
        : Buffer.compare(Buffer.from(one.value.key), Buffer.from(other.value.key));
    if (order < 0 && !one.done) {
      onDifference({ table, key: keyOf(table, one.value), kind: 'surplus' });
    } else if (order > 0 && !other.done) {
      onDifference({ table, key: keyOf(table, other.value), kind: 'missing' });
    } else if (!one.done && !other.done && one.value.row !== other.value.row) {
      const columns = changedColumns(one.value, other.value);
      if (columns.length > 0) onDifference({ table, key: keyOf(table, one.value), kind: 'changed', columns });
    }
    if (order <= 0) one = await ones.next();
    if (order >= 0) other = await others.next();
  }
}

/** By the bytes of the key's text, which both servers and this process order alike. */
async function* rowsInOrder(side: Side, table: ViewTable): AsyncGenerator<KeyedRow, void, undefined> {
  const key = sql.join(TABLES[table].key.map((column) => sql`t.${sql.ref(column)}`));
  const cursor = sql.id(`compare_${side.schema}`);
  await sql`
    declare ${cursor} no scroll cursor for
    select json_build_array(${key})::text collate "C" as key, to_jsonb(t)::text as row
      from ${sql.id(side.schema, table)} t order by 1`.execute(side.db);
  try {
    for (;;) {
      const { rows } = await sql<KeyedRow>`fetch ${sql.raw(String(FETCH_ROWS))} from ${cursor}`.execute(
        side.db,
      );
      if (rows.length === 0) return;
      yield* rows;
    }
  } finally {
    await sql`close ${cursor}`.execute(side.db);
  }
}

const parsed = (row: KeyedRow): Record<string, unknown> => JSON.parse(row.row) as Record<string, unknown>;

function keyOf(table: ViewTable, row: KeyedRow): Record<string, unknown> {
  const values = parsed(row);
  return Object.fromEntries(TABLES[table].key.map((column) => [column, values[column]]));
}

function changedColumns(live: KeyedRow, folded: KeyedRow): NonNullable<Difference['columns']> {
  const one = parsed(live);
  const other = parsed(folded);
  return [...new Set([...Object.keys(one), ...Object.keys(other)])]
    .filter((column) => !isDeepStrictEqual(one[column], other[column]))
    .map((column) => ({ column, live: one[column] ?? null, folded: other[column] ?? null }));
}

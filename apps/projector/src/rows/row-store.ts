import type { ViewsDb } from '#schema/connect.js';
import type { Key, Row, ViewTable } from './row-set.js';
import { selectByKeys, upsert } from './statements.js';

/** Where rows come from and go to. */
export interface RowStore {
  /** The rows of these keys that there are. */
  select<T extends ViewTable>(table: T, keys: readonly Key[]): Promise<readonly Row<T>[]>;
  /** Inserts or replaces whole rows. */
  upsert<T extends ViewTable>(table: T, rows: readonly Row<T>[]): Promise<void>;
}

export const postgresRows = (db: ViewsDb, schema: string): RowStore => ({
  select: async (table, keys) => (await selectByKeys(schema, table, keys).execute(db)).rows,
  upsert: async (table, rows) => {
    await upsert(schema, table, rows).execute(db);
  },
});

import { TABLES } from '#schema/db.types.js';
import type { Key, Row, ViewTable } from '../rows/row-set.js';
import type { RowStore } from '../rows/row-store.js';

/** Tables in memory that keep rows as the database would give them back: as JSON. */
export class MemoryRows implements RowStore {
  readonly tables = new Map<ViewTable, Map<string, unknown>>();

  select<T extends ViewTable>(table: T, keys: readonly Key[]): Promise<readonly Row<T>[]> {
    const rows = keys.map((key) => this.#table(table).get(JSON.stringify(key)));
    return Promise.resolve(structuredClone(rows.filter((row) => row !== undefined)) as Row<T>[]);
  }

  upsert<T extends ViewTable>(table: T, rows: readonly Row<T>[]): Promise<void> {
    for (const row of JSON.parse(JSON.stringify(rows)) as Record<string, unknown>[]) {
      this.#table(table).set(JSON.stringify(TABLES[table].key.map((column) => row[column])), row);
    }
    return Promise.resolve();
  }

  /** The rows of a table, in the order in which they first came. */
  rows<T extends ViewTable>(table: T): readonly Row<T>[] {
    return [...this.#table(table).values()] as Row<T>[];
  }

  #table(table: ViewTable): Map<string, unknown> {
    const known = this.tables.get(table);
    if (known) return known;
    const made = new Map<string, unknown>();
    this.tables.set(table, made);
    return made;
  }
}

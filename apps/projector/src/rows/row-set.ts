import { type DB, TABLES } from '#schema/db.types.js';

export type ViewTable = Exclude<keyof typeof TABLES, 'migrations' | 'checkpoints'>;
export type Row<T extends ViewTable> = DB[T];

/** `before` is undefined for a row that was not there. */
export interface RowChange<R> {
  readonly before: R | undefined;
  readonly after: R;
}

/** Parts of a primary key, in the order of the table's key columns. */
export type Key = readonly string[];

const SEPARATOR = '\u0000';

/**
 * The rows of one table that a batch works on: loaded once, changed in memory one event after the other, written once.
 * So a batch of any size gives what the same events one by one would give.
 */
export class RowSet<T extends ViewTable> {
  readonly table: T;
  readonly #wanted = new Map<string, Key>();
  readonly #rows = new Map<string, Row<T> | undefined>();
  readonly #changed = new Set<string>();
  readonly #before = new Map<string, Row<T>>();

  constructor(table: T) {
    this.table = table;
  }

  /** Says that the batch will read this row; without effect when it is here already. */
  want(...key: Key): void {
    const id = key.join(SEPARATOR);
    if (!this.#rows.has(id)) this.#wanted.set(id, key);
  }

  /** Keys that are wanted and not here yet. */
  missing(): readonly Key[] {
    return [...this.#wanted.values()];
  }

  /** Takes what the database gave for the missing keys; a key without a row is known to be absent. */
  loaded(rows: readonly Row<T>[]): void {
    for (const id of this.#wanted.keys()) this.#rows.set(id, undefined);
    this.#wanted.clear();
    for (const row of rows) {
      const id = this.#idOf(row);
      this.#rows.set(id, row);
      this.#before.set(id, row);
    }
  }

  /** @throws when the row was never asked for: a handler reads a row that it did not name. */
  get(...key: Key): Row<T> | undefined {
    const id = key.join(SEPARATOR);
    if (!this.#rows.has(id))
      throw new Error(`Row ${key.join('/')} of ${this.table} was read but not loaded.`);
    return this.#rows.get(id);
  }

  /** Whether the row is here, present or known to be absent. */
  knows(...key: Key): boolean {
    return this.#rows.has(key.join(SEPARATOR));
  }

  put(row: Row<T>): void {
    const id = this.#idOf(row);
    this.#rows.set(id, row);
    this.#changed.add(id);
  }

  /** Changes a row that is there; does nothing where there is none. */
  patch(key: Key, change: Partial<Row<T>>): void {
    const row = this.get(...key);
    if (row) this.put({ ...row, ...change });
  }

  changed(): readonly Row<T>[] {
    return [...this.#changed].map((id) => this.#rows.get(id)).filter((row) => row !== undefined);
  }

  /** What was changed, beside what was loaded. */
  changes(): readonly RowChange<Row<T>>[] {
    return [...this.#changed].flatMap((id) => {
      const after = this.#rows.get(id);
      return after === undefined ? [] : [{ before: this.#before.get(id), after }];
    });
  }

  present(): readonly Row<T>[] {
    return [...this.#rows.values()].filter((row) => row !== undefined);
  }

  #idOf(row: Row<T>): string {
    const columns: readonly string[] = TABLES[this.table].key;
    return columns
      .map((column) => String((row as unknown as Record<string, unknown>)[column]))
      .join(SEPARATOR);
  }
}

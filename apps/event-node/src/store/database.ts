import Database from 'libsql';
import { createPrivateFile } from '../access/private-files.js';

export type Sqlite = InstanceType<typeof Database>;
/** Statements are always given one array: a single object argument would be taken for named parameters. */
export interface Query<Row extends readonly unknown[]> {
  get(parameters: readonly unknown[]): Row | undefined;
  all(parameters: readonly unknown[]): Row[];
}
export interface Change {
  run(parameters: readonly unknown[]): { changes: number; lastInsertRowid: number | bigint };
}

export const query = <Row extends readonly unknown[]>(db: Sqlite, sql: string): Query<Row> =>
  db.prepare(sql).raw() as unknown as Query<Row>;
export const change = (db: Sqlite, sql: string): Change => db.prepare(sql);

export const FORMAT = 1;

const SCHEMA = `
  create table if not exists streams (
    sid integer primary key,
    name text not null unique,
    -- revisions below were removed by a scavenge
    removed integer not null default 0
  ) strict;
  create table if not exists events (
    position integer primary key,
    sid integer not null,
    revision integer not null,
    record blob not null
  ) strict;
  create unique index if not exists events_by_stream on events (sid, revision);
  create index if not exists tombstones on events (sid) where revision = 9223372036854775807;
  create table if not exists node (
    key text primary key,
    value any not null
  ) strict;
`;

/**
 * Opens a log file for writing, and creates what is missing in it. Checkpoints are the keeper's business: an automatic
 * one would run on the committing connection and show in the slowest appends. Nobody else writes, so there is nothing to
 * wait for.
 */
export function openDatabase(file: string): Sqlite {
  createPrivateFile(file);
  const db = new Database(file);
  try {
    db.exec(`
      pragma auto_vacuum = incremental;
      pragma journal_mode = wal;
      pragma synchronous = full;
      pragma cache_size = -16000;
      pragma journal_size_limit = 67108864;
      pragma wal_autocheckpoint = 0;
      pragma busy_timeout = 50;
    `);
    db.exec(SCHEMA);
    const format = query<[number]>(db, `select value from node where key = 'format'`).get([]);
    if (!format) change(db, `insert into node (key, value) values ('format', ?)`).run([FORMAT]);
    else if (format[0] !== FORMAT) throw new FormatError(file, format[0]);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A second connection to a log that is open: for what is done beside the committing one, with the same care for the disk. */
export function openBeside(file: string): Sqlite {
  const db = new Database(file);
  db.exec('pragma busy_timeout = 10000; pragma synchronous = full; pragma wal_autocheckpoint = 0');
  return db;
}

export class FormatError extends Error {
  override readonly name = 'FormatError';
  constructor(file: string, format: number) {
    super(
      `The log ${file} has format ${format}; this build reads format ${FORMAT}. Start the build that wrote it.`,
    );
  }
}

const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';

/** The file's content is not what SQLite wrote: pages torn, overwritten, or no database at all. */
export const isDamage = (error: unknown): boolean => {
  const code = codeOf(error);
  return code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB';
};

export const isDiskFull = (error: unknown): boolean => codeOf(error) === 'SQLITE_FULL';

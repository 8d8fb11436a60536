import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { DB } from './db.types.js';

export type ViewsDb = Kysely<DB>;

/** The schema that holds every view. A rebuild folds into another one and renames it to this. */
export const VIEWS_SCHEMA = 'views';

const TIMESTAMPTZ: number = pg.types.builtins.TIMESTAMPTZ;
const INT8: number = pg.types.builtins.INT8;
/** Its overloads name each known oid; it takes any. */
const parserOf = pg.types.getTypeParser as (
  oid: number,
  format?: 'text' | 'binary',
) => (value: string) => unknown;

/**
 * How values come back: times as ISO text (as the events have them), whole numbers as numbers where they are exact
 * and as text above 2^53, positions (`numeric`) always as text.
 */
const types: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === TIMESTAMPTZ) return isoTime;
    if (oid === INT8) return exactNumber;
    return parserOf(oid, format);
  },
};

function isoTime(value: string): string {
  const date = new Date(value);
  // `infinity` and years beyond JavaScript's stay as Postgres wrote them.
  return Number.isNaN(date.getTime()) ? value : date.toISOString();
}

function exactNumber(value: string): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

export interface ConnectOptions {
  /** Shown in pg_stat_activity. */
  readonly applicationName: string;
  /** A statement that runs longer is cancelled by the server; 0: never. */
  readonly statementTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
  /** Told of an idle connection that broke: without it the process would die of it. */
  readonly onIdleError?: (error: Error) => void;
}

/** What every connection to the views is opened with. */
export function connectionConfig(databaseUrl: string, options: ConnectOptions): pg.ClientConfig {
  return {
    connectionString: databaseUrl,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5000,
    statement_timeout: options.statementTimeoutMs ?? 0,
    keepAlive: true,
    types,
  };
}

/** A pool over the views. Connections are opened by need: nothing is tried before the first query. */
export function openViews(
  databaseUrl: string,
  options: ConnectOptions & { readonly maxConnections: number },
): ViewsDb {
  const pool = new pg.Pool({
    ...connectionConfig(databaseUrl, options),
    max: options.maxConnections,
    idleTimeoutMillis: 30_000,
  });
  pool.on('error', (error) => options.onIdleError?.(error));
  return new Kysely<DB>({ dialect: new PostgresDialect({ pool }) });
}

const UNREACHABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

/** Whether an error says that Postgres is away for now: trying again later can help. */
export function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as Error & { code?: unknown }).code;
  if (typeof code === 'string') {
    // 08: connection; 57P01-57P03: shut down, crashed, starting up; 53300: no connection left.
    if (code.startsWith('08') || /^57P0[1-5]$/.test(code) || code === '53300') return true;
    if (UNREACHABLE_CODES.has(code)) return true;
  }
  if (error instanceof AggregateError) return error.errors.some(isUnreachable);
  return /connection terminated|connection ended|timeout exceeded when trying to connect|connection timeout|client has encountered a connection error|not queryable|client was closed|driver has already been destroyed/i.test(
    error.message,
  );
}

/** One connection and nothing else: what is locked or set in the session stays with the statements. */
export interface ViewsSession {
  readonly db: ViewsDb;
  readonly client: pg.Client;
  /** Settles when the connection is gone, however it went. */
  readonly lost: Promise<Error | undefined>;
  close(): Promise<void>;
}

/**
 * Opens one connection. A pool would open a second one behind our back when the first breaks, and a session lock
 * would be lost unseen; here everything after a break fails, and the caller starts anew.
 */
export async function openSession(databaseUrl: string, options: ConnectOptions): Promise<ViewsSession> {
  const limitMs = options.statementTimeoutMs ?? 0;
  const client = new pg.Client({
    ...connectionConfig(databaseUrl, options),
    // The server's limit does not reach us when the server itself hangs.
    ...(limitMs > 0 ? { query_timeout: limitMs + 5000 } : {}),
  });
  const lost = new Promise<Error | undefined>((resolve) => {
    client.once('error', resolve);
    client.once('end', () => resolve(undefined));
  });
  // A broken connection can report more than once; only the first matters, and none may kill the process.
  client.on('error', () => undefined);
  await client.connect();
  const only = {
    query: client.query.bind(client) as never,
    release: () => undefined,
  };
  const pool = { connect: () => Promise.resolve(only), end: () => Promise.resolve() };
  return {
    client,
    db: new Kysely<DB>({ dialect: new PostgresDialect({ pool }) }),
    lost,
    close: async () => {
      const ended = client.end().catch(() => undefined);
      // A server that hangs never answers the goodbye.
      const timer = new Promise((resolve) => setTimeout(resolve, 2000).unref());
      await Promise.race([ended, timer]);
    },
  };
}

import {
  type DatabaseConnection,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely';
import type { ViewsDb, ViewsSession } from '../connect.js';
import type { DB } from '../db.types.js';

type Row = Readonly<Record<string, unknown>>;

/** Writes down what it is asked, and gives the rows that a test says. */
class Recorder extends DummyDriver {
  readonly asked: string[] = [];
  readonly #answer: (sql: string) => readonly Row[];

  constructor(answer: (sql: string) => readonly Row[]) {
    super();
    this.#answer = answer;
  }

  override acquireConnection(): Promise<DatabaseConnection> {
    return Promise.resolve({
      executeQuery: ({ sql }: { sql: string }) => {
        const text = sql.replaceAll(/\s+/g, ' ').trim();
        this.asked.push(text);
        return Promise.resolve({ rows: this.#answer(text) as never[], numAffectedRows: 1n });
      },
      streamQuery: async function* () {
        await Promise.reject(new Error('nothing is streamed'));
      },
    });
  }
}

export interface RecordedDb {
  readonly db: ViewsDb;
  /** A session over it, whose migrations find nothing and do nothing. */
  readonly session: ViewsSession;
  /** Every statement, blanks as one. */
  readonly asked: readonly string[];
}

/** A database that is none: for the text of statements. */
export function recordedDb(answer: (sql: string) => readonly Row[] = () => []): RecordedDb {
  const driver = new Recorder(answer);
  const db = new Kysely<DB>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => driver,
      createIntrospector: (kysely) => new PostgresIntrospector(kysely),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
  const client = { query: () => Promise.resolve({ rows: [] }) } as unknown as ViewsSession['client'];
  return {
    db,
    asked: driver.asked,
    session: { client, db, lost: new Promise(() => undefined), close: () => Promise.resolve() },
  };
}

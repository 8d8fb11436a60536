import { sql } from 'kysely';
import type { BerthEvent, LogPosition, Recorded } from '#domain/events/index.js';
import { pause } from '#events/back-off.js';
import type { CatchUpBatch, CatchUpSink } from '#events/runner/sink.js';
import { isUnreachable, openSession, type ViewsSession } from '#schema/connect.js';
import { migrate } from '#schema/migrate.js';
import { VIEW_TABLES } from '../rows/views.js';
import { clearLeftovers } from '../replay/beside.js';
import { BatchWriter } from './batch-writer.js';
import { beginCheckpoint, readCheckpoint } from './checkpoint.js';

export interface ViewsSinkOptions {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly onMigrated: (names: readonly string[]) => void;
  /** This copy is the active one from here on. */
  readonly onActive: () => void;
  /** Another copy is active; this one waits. */
  readonly onStandby: () => void;
  readonly onSetAside: (recorded: Recorded<BerthEvent>, error: Error) => void;
}

const STANDBY_POLL_MS = 250;
/** A Postgres that hangs must not hang us with it; no batch takes near as long. */
const STATEMENT_LIMIT_MS = 60_000;

/**
 * The views as the place where events go. One copy is active per database: it holds a session lock on the very connection
 * that it writes with, so that the lock and the ability to write are lost together.
 */
export class ViewsSink implements CatchUpSink {
  readonly #options: ViewsSinkOptions;
  readonly #closing = new AbortController();
  #session: ViewsSession | undefined;

  constructor(options: ViewsSinkOptions) {
    this.#options = options;
  }

  /** Opens a new connection, migrates, waits for its turn. */
  async begin(): Promise<{ readonly checkpoint?: LogPosition; readonly logId?: string }> {
    const { databaseUrl, schema, onMigrated, onActive } = this.#options;
    await this.#session?.close();
    this.#session = undefined;
    try {
      const session = await openSession(databaseUrl, {
        applicationName: 'berth-projector',
        connectTimeoutMs: 5000,
        statementTimeoutMs: STATEMENT_LIMIT_MS,
      });
      this.#session = session;
      const applied = await migrate(session.client, schema);
      if (applied.length > 0) onMigrated(applied);
      await this.#becomeActive(session);
      await clearLeftovers(session.db, schema);
      onActive();
      const found = await readCheckpoint(session.db, schema);
      if (!found) return {};
      return { logId: found.logId, ...(found.position ? { checkpoint: found.position } : {}) };
    } catch (error) {
      throw explained(error);
    }
  }

  async reset(logId: string): Promise<void> {
    const { schema } = this.#options;
    try {
      await this.#live()
        .db.transaction()
        .execute(async (trx) => {
          await sql`truncate ${sql.join(VIEW_TABLES.map((table) => sql.id(schema, table)))}`.execute(trx);
          await beginCheckpoint(trx, schema, logId);
        });
    } catch (error) {
      throw explained(error);
    }
  }

  async commit(batch: CatchUpBatch, position: LogPosition): Promise<void> {
    const { schema, onSetAside } = this.#options;
    const { db } = this.#live();
    try {
      if (batch.after === undefined) await beginCheckpoint(db, schema, batch.logId);
      const from = { logId: batch.logId, position: batch.after };
      const writer = new BatchWriter({ db, schema, from, onSetAside });
      await writer.write({ events: batch.events, through: position });
    } catch (error) {
      throw explained(error);
    }
  }

  /** Ends a wait for the turn; what is under way is still written. */
  stopWaiting(): void {
    this.#closing.abort();
  }

  async close(): Promise<void> {
    this.stopWaiting();
    await this.#session?.close();
  }

  #live(): ViewsSession {
    if (!this.#session) throw new Error('The views are not open.');
    return this.#session;
  }

  async #becomeActive({ client }: ViewsSession): Promise<void> {
    let said = false;
    for (;;) {
      const { rows } = await client.query<{ locked: boolean }>(
        'select pg_try_advisory_lock(hashtextextended($1, 0)) as locked',
        [`berth projector ${this.#options.schema}`],
      );
      if (rows[0]?.locked === true) return;
      if (!said) this.#options.onStandby();
      said = true;
      await pause(STANDBY_POLL_MS, this.#closing.signal);
      if (this.#closing.signal.aborted) throw new Error('It was stopped before its turn came.');
    }
  }
}

function explained(error: unknown): unknown {
  if (!isUnreachable(error)) return error;
  const message = error instanceof Error && error.message !== '' ? error.message : 'no connection';
  return new Error(`Postgres is out of reach (${message})`, { cause: error });
}

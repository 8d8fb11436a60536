import type { Recorded, BerthEvent } from '#domain/events/index.js';
import type { EventLog, Subscription } from '#events/event-log.js';
import { isUnreachable, openSession, type ViewsSession } from '#schema/connect.js';
import { migrate, MigrationMismatch } from '#schema/migrate.js';
import { PREFIXES } from '../handlers/index.js';
import { type BatchLimits, BatchQueue, DEFAULT_LIMITS } from './batch-queue.js';
import { BatchWriter, Overtaken } from './batch-writer.js';
import { prepareViews } from './prepare-views.js';

export interface ProjectorLog {
  readonly info: (fields: object, message: string) => void;
  readonly warn: (fields: object, message: string) => void;
  readonly error: (fields: object, message: string) => void;
}

export interface ProjectorOptions {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly events: EventLog;
  readonly log: ProjectorLog;
  readonly limits?: BatchLimits;
  /** Milliseconds to wait before the n-th try in a row after a failure (from 1). */
  readonly backOffMs?: (attempt: number) => number;
}

const STANDBY_POLL_MS = 250;
/** 0.2 s, doubled to at most 10 s, each half at random so that two projectors do not step together. */
const defaultBackOff = (attempt: number): number =>
  Math.min(10_000, 200 * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);

/**
 * Keeps the views up with the log for as long as it runs. One projector is active per database: it holds a session lock
 * on the connection that it writes with; others wait and take over when it is gone. When Postgres or the log go away it
 * starts again from the checkpoint, for as long as it takes.
 */
export class Projector {
  readonly #options: ProjectorOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #following!: () => void;
  /** Fulfilled the first time that it follows the log as the active projector. */
  readonly following: Promise<void> = new Promise((resolve) => (this.#following = resolve));
  /** Fulfilled the first time that it must wait for another one. */
  #waiting!: () => void;
  readonly standby: Promise<void> = new Promise((resolve) => (this.#waiting = resolve));

  constructor(options: ProjectorOptions) {
    this.#options = options;
  }

  /** Settles after `stop`; rejects when a person must mend something first. Call once. */
  run(): Promise<void> {
    this.#running ??= this.#run();
    return this.#running;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running?.catch(() => undefined);
  }

  async #run(): Promise<void> {
    const { log, backOffMs = defaultBackOff } = this.#options;
    let attempt = 0;
    while (!this.#isStopping()) {
      try {
        await this.#once(() => (attempt = 0));
      } catch (error) {
        if (this.#isStopping()) return;
        if (error instanceof MigrationMismatch) throw error;
        attempt += 1;
        const waitMs = Math.round(backOffMs(attempt));
        const what = reason(error);
        log.warn(
          { attempt, waitMs, ...what.fields },
          `${what.sentence} Folding goes on from the checkpoint in ${waitMs} ms.`,
        );
        await this.#pause(waitMs);
      }
    }
  }

  /** One life of a connection: from opening it to its loss. Returns when told to stop. */
  async #once(onProgress: () => void): Promise<void> {
    const { databaseUrl, schema, events, log } = this.#options;
    const session = await openSession(databaseUrl, {
      applicationName: 'berth-projector',
      connectTimeoutMs: 5000,
    });
    try {
      const applied = await migrate(session.client, schema);
      if (applied.length > 0) log.info({ applied }, 'The views were migrated.');
      if (!(await this.#becomeActive(session))) return;
      const logId = await this.#unlessStopped(events.identity());
      const end = await this.#unlessStopped(events.endPosition());
      if (logId === STOPPED || end === STOPPED) return;
      const from = await prepareViews(session.db, schema, { logId, end }, (message) => log.warn({}, message));
      const writer = new BatchWriter({
        db: session.db,
        schema,
        from,
        onSetAside: (recorded, error) => this.#saySetAside(recorded, error),
      });
      await this.#follow(session, writer, onProgress);
    } finally {
      await session.close();
    }
  }

  async #follow(session: ViewsSession, writer: BatchWriter, onProgress: () => void): Promise<void> {
    const { events, log, limits = DEFAULT_LIMITS } = this.#options;
    const startedFrom = writer.checkpoint.position;
    let folded = 0;
    let caughtUp = false;
    const queue = new BatchQueue(
      async (batch) => {
        await writer.write(batch);
        folded += batch.events.length;
        onProgress();
      },
      limits,
      {
        onCaughtUp: () => {
          if (caughtUp) return;
          caughtUp = true;
          log.info({ events: folded }, 'The views are up with the event log.');
        },
        onConnected: (connected) =>
          connected
            ? log.info({}, 'The event log is followed.')
            : log.warn({}, 'The event log is out of reach; the views stay as they are until it is back.'),
      },
    );
    const subscription: Subscription = events.subscribeAll(
      PREFIXES,
      queue,
      startedFrom ? { after: startedFrom } : {},
    );
    this.#following();
    try {
      await this.#unlessStopped(
        Promise.race([
          queue.failed,
          subscription.ended,
          session.lost.then((error) => {
            throw error ?? new Error('Connection terminated: Postgres closed it.');
          }),
        ]),
      );
    } finally {
      await queue.close(this.#stopping.signal.aborted);
      await subscription.stop();
    }
  }

  /** @returns false when told to stop before its turn came. */
  async #becomeActive(session: ViewsSession): Promise<boolean> {
    let said = false;
    for (;;) {
      const { rows } = await session.client.query<{ locked: boolean }>(
        'select pg_try_advisory_lock(hashtextextended($1, 0)) as locked',
        [`berth projector ${this.#options.schema}`],
      );
      if (this.#isStopping()) return false;
      if (rows[0]?.locked === true) return true;
      if (!said) this.#options.log.info({}, 'Another projector is active; this one waits to take over.');
      said = true;
      this.#waiting();
      await this.#pause(STANDBY_POLL_MS);
      if (this.#isStopping()) return false;
    }
  }

  #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  #saySetAside(recorded: Recorded<BerthEvent>, error: Error): void {
    this.#options.log.error(
      {
        eventId: recorded.id,
        stream: recorded.stream,
        revision: recorded.revision,
        type: recorded.event.type,
      },
      `No view could take this event; it is kept in set_aside_events and the rest goes on: ${error.message}`,
    );
  }

  async #unlessStopped<T>(work: Promise<T>): Promise<T | typeof STOPPED> {
    const { signal } = this.#stopping;
    if (signal.aborted) return STOPPED;
    let onAbort: (() => void) | undefined;
    const stopped = new Promise<typeof STOPPED>((resolve) => {
      onAbort = () => resolve(STOPPED);
      signal.addEventListener('abort', onAbort, { once: true });
    });
    try {
      return await Promise.race([work, stopped]);
    } finally {
      if (onAbort) signal.removeEventListener('abort', onAbort);
      // Whoever lost the race must not end the process by a rejection that nobody looks at any more.
      work.catch(() => undefined);
    }
  }

  async #pause(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await this.#unlessStopped(new Promise<void>((resolve) => (timer = setTimeout(resolve, ms))));
    clearTimeout(timer);
  }
}

const STOPPED = Symbol('stopped');

function reason(error: unknown): { readonly sentence: string; readonly fields: object } {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Overtaken) return { sentence: error.message, fields: {} };
  if (isUnreachable(error)) return { sentence: `Postgres is out of reach (${message}).`, fields: {} };
  return { sentence: `Folding stopped (${message}).`, fields: { err: error } };
}

import { setTimeout as rest } from 'node:timers/promises';
import { sql } from 'kysely';
import type { LogPosition } from '#domain/events/index.js';
import type { EventLog } from '#events/event-log.js';
import type { ViewsDb, ViewsSession } from '#schema/connect.js';
import { migrationLock } from '#schema/migrate.js';
import type { Checkpoint } from '../run/checkpoint.js';
import { besideOf, openReplaySession } from './beside.js';
import { endOf, isOfThisLog, liveCheckpoint } from './live-checkpoint.js';

export interface SwapOptions {
  readonly databaseUrl: string;
  /** The schema of the live views; the fresh ones are beside it. */
  readonly live: string;
  readonly log: EventLog;
  /** The session that folds. */
  readonly writing: ViewsSession;
  /** Where the fresh tables stand. */
  readonly folded: Checkpoint;
  readonly fold: (from: Checkpoint, through: LogPosition) => Promise<Checkpoint>;
  readonly signal?: AbortSignal;
  /** Opens the session that holds the locks. */
  readonly open?: (databaseUrl: string) => Promise<ViewsSession>;
}

/** How long the swap may wait for who has a transaction open on the live views: the projector, or a reader. */
const SWAP_WAIT_MS = 60_000;
/**
 * Readers that came meanwhile wait this long at most. Below the second after which Postgres looks for deadlocks: of a
 * reader that holds one view and the swap that holds the next, the swap gives way.
 */
const READERS_WAIT_MS = 200;
const BETWEEN_TRIES_MS = 100;
const LOCK_NOT_AVAILABLE = '55P03';

const isLockTimeout = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === LOCK_NOT_AVAILABLE;

/**
 * Gives the fresh tables the name of the live ones, in one transaction. It holds every live view for itself while the
 * names change: who reads has the old rows to the end of its transaction, who comes waits a moment and has the new ones,
 * and no statement finds one view old and the next one new.
 * @returns where the tables stand that are live now.
 * @throws when somebody has a transaction open on the views for too long; nothing was changed then.
 */
export async function swap({
  databaseUrl,
  live,
  log,
  writing,
  folded,
  fold,
  signal,
  open = openReplaySession,
}: SwapOptions): Promise<Checkpoint> {
  // The commits of the fold must be on disk before the swap is: they come before it in one write-ahead log.
  await sql`set synchronous_commit to on`.execute(writing.db);
  const holding = await open(databaseUrl);
  const giveUpAt = performance.now() + SWAP_WAIT_MS;
  let reached = folded;
  try {
    for (;;) {
      try {
        return await holding.db.transaction().execute(async (trx) => {
          await sql.raw(`set local lock_timeout to ${SWAP_WAIT_MS}`).execute(trx);
          await standStill(trx, live);
          const stands = await liveCheckpoint(trx, live);
          if (stands?.position && isOfThisLog(stands, reached.logId, await endOf(log)))
            reached = await fold(reached, stands.position);
          await sql.raw(`set local lock_timeout to ${READERS_WAIT_MS}`).execute(trx);
          await rename(trx, live);
          return reached;
        });
      } catch (error) {
        if (!isLockTimeout(error)) throw error;
        if (performance.now() > giveUpAt)
          throw new Error(
            `A transaction has been open on the live views for ${SWAP_WAIT_MS / 1000} s. They are as they were: end it (pg_stat_activity names it), and try again.`,
            { cause: error },
          );
        await rest(BETWEEN_TRIES_MS);
        signal?.throwIfAborted();
      }
    }
  } finally {
    await holding.close();
  }
}

/** Between two transactions of the live projector, and of no migration. */
async function standStill(trx: ViewsDb, live: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${migrationLock(live)}, 0))`.execute(trx);
  const { rows } = await sql<{ found: boolean }>`
    select to_regclass(${`"${live}".checkpoints`}) is not null as found`.execute(trx);
  if (rows[0]?.found === true)
    await sql`lock table ${sql.id(live, 'checkpoints')} in access exclusive mode`.execute(trx);
}

async function rename(trx: ViewsDb, live: string): Promise<void> {
  const { next, old } = besideOf(live);
  const { rows: relations } = await sql<{ name: string }>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = ${live} and c.relkind in ('r', 'p', 'v', 'm') order by 1`.execute(trx);
  if (relations.length > 0) {
    const names = sql.join(relations.map(({ name }) => sql.id(live, name)));
    await sql`lock table ${names} in access exclusive mode`.execute(trx);
  }
  const exists = await sql<{ found: boolean }>`
    select exists (select from pg_namespace where nspname = ${live}) as found`.execute(trx);
  if (exists.rows[0]?.found === true)
    await sql`alter schema ${sql.id(live)} rename to ${sql.id(old)}`.execute(trx);
  await sql`alter schema ${sql.id(next)} rename to ${sql.id(live)}`.execute(trx);
}

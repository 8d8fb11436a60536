import { sql } from 'kysely';
import type { LogPosition } from '#domain/events/index.js';
import { readMigrations } from '#schema/migrate.js';
import type { ViewsDb } from '#schema/connect.js';
import { beginCheckpoint, type Checkpoint } from '../run/checkpoint.js';
import { besideOf, clearBeside, makeBeside, openReplaySession, takeTurn } from './beside.js';
import { compareViews, type Difference } from './compare.js';
import { foldThrough } from './fold-through.js';
import { endOf, isOfThisLog, liveCheckpoint } from './live-checkpoint.js';
import type { ReplayOptions } from './rebuild.js';

export interface Verified {
  readonly events: number;
  readonly rows: number;
  readonly differences: number;
  /** The position at which both were compared. */
  readonly position: LogPosition;
}

/**
 * Folds the log beside the live views and compares row by row, without touching them and without holding the projector
 * up: the live rows are read in one snapshot, which has them exactly as they were at the checkpoint L in it, and the fold
 * goes through L and not beyond.
 */
export async function verify(
  options: ReplayOptions,
  onDifference: (difference: Difference) => void,
): Promise<Verified> {
  const { log, databaseUrl, live, signal } = options;
  const logId = await log.identity();
  const folding = await openReplaySession(databaseUrl);
  const reading = await openReplaySession(databaseUrl);
  try {
    await takeTurn(folding.db, live);
    await clearBeside(folding.db, live);
    await sameTables(reading.db, live);
    const { verified } = besideOf(live);
    await makeBeside(folding, verified);
    await beginCheckpoint(folding.db, verified, logId);
    let events = 0;
    const fold = (from: Checkpoint, through: LogPosition): Promise<Checkpoint> =>
      foldThrough({
        log,
        db: folding.db,
        schema: verified,
        from,
        through,
        onSetAside: options.onSetAside,
        onProgress: (count, position) => {
          events += count;
          options.onProgress(count, position);
        },
        ...(signal ? { signal } : {}),
      });
    const first = await standing(reading.db, live, logId, await endOf(log));
    options.onStep('fold', first);
    const folded = await fold({ logId, position: undefined }, first);
    return await reading.db
      .transaction()
      .setIsolationLevel('repeatable read')
      .execute(async (snapshot) => {
        const position = await standing(snapshot, live, logId, await endOf(log));
        if (position.commit < first.commit)
          throw new Error('The live views were folded anew meanwhile. Verify again when they are up.');
        await fold(folded, position);
        options.onStep('compare', position);
        let differences = 0;
        const rows = await folding.db.transaction().execute((trx) =>
          compareViews({ db: snapshot, schema: live }, { db: trx, schema: verified }, (difference) => {
            differences += 1;
            onDifference(difference);
          }),
        );
        return { events, rows, differences, position };
      });
  } finally {
    await reading.close();
    await clearBeside(folding.db, live).catch(() => undefined);
    await folding.close();
  }
}

/** @throws when there is nothing that could be compared with this log. */
async function standing(db: ViewsDb, live: string, logId: string, end: LogPosition): Promise<LogPosition> {
  const checkpoint = await liveCheckpoint(db, live);
  if (checkpoint?.position && isOfThisLog(checkpoint, logId, end)) return checkpoint.position;
  throw new Error(
    checkpoint
      ? `The live views were folded from event log ${checkpoint.logId} and stand at ${String(checkpoint.position?.commit ?? 'its beginning')}; this is log ${logId}. \`berth replay\` folds them anew.`
      : 'There are no live views yet: start Berth, or fold them with `berth replay`.',
  );
}

/** Views of another version differ by what they are, not by what happened. */
export async function sameTables(db: ViewsDb, live: string): Promise<void> {
  const { rows } = await sql<{ found: boolean }>`
    select to_regclass(${`"${live}".migrations`}) is not null as found`.execute(db);
  if (rows[0]?.found !== true) return;
  const applied = await sql<{ name: string }>`
    select name from ${sql.id(live, 'migrations')} order by name`.execute(db);
  const own = readMigrations().map((migration) => migration.name);
  const theirs = applied.rows.map((row) => row.name);
  if (own.join() !== theirs.join())
    throw new Error(
      `The live views are at migration ${theirs.at(-1) ?? 'none'} and this version of Berth at ${own.at(-1) ?? 'none'}: fold them anew with \`berth replay\`.`,
    );
}

import type { BerthEvent, LogPosition, Recorded } from '#domain/events/index.js';
import type { EventLog } from '#events/event-log.js';
import { beginCheckpoint, type Checkpoint } from '../run/checkpoint.js';
import {
  besideOf,
  clearBeside,
  dropOld,
  makeBeside,
  makeIndexes,
  openReplaySession,
  takeTurn,
} from './beside.js';
import { foldThrough } from './fold-through.js';
import { endOf } from './live-checkpoint.js';
import { swap } from './swap.js';

export interface ReplayOptions {
  readonly log: EventLog;
  readonly databaseUrl: string;
  /** The schema of the live views. */
  readonly live: string;
  readonly onSetAside: (recorded: Recorded<BerthEvent>, error: Error) => void;
  /** What is under way, as words for a person. */
  readonly onStep: (step: 'fold' | 'index' | 'swap' | 'compare', end: LogPosition) => void;
  readonly onProgress: (events: number, position: LogPosition) => void;
  readonly signal?: AbortSignal;
}

export interface Rebuilt {
  readonly events: number;
  readonly position: LogPosition;
  /** Events that no view could take. */
  readonly setAside: number;
}

/**
 * Folds the whole log into fresh tables beside the live ones and makes them the live ones in one transaction.
 *
 * The live projector goes on meanwhile. Each of its transactions begins by moving its checkpoint, so a lock on the table
 * of checkpoints stands between two of them. Under it the live views stand still at a position L: the fresh ones are
 * folded on through L, and then the schemas change names. The projector's next transaction finds, under the name that it
 * knows, a checkpoint at exactly L and goes on; had the fresh tables been further than L it would find that it was
 * overtaken, write nothing, and begin again from there. So no event is lost and none counts twice.
 */
export async function rebuild(options: ReplayOptions): Promise<Rebuilt> {
  const { log, databaseUrl, live, signal } = options;
  const logId = await log.identity();
  const session = await openReplaySession(databaseUrl);
  try {
    await takeTurn(session.db, live);
    await clearBeside(session.db, live);
    const { next } = besideOf(live);
    const indexes = await makeBeside(session, next);
    await beginCheckpoint(session.db, next, logId);
    let events = 0;
    let setAside = 0;
    const fold = (from: Checkpoint, through: LogPosition): Promise<Checkpoint> =>
      foldThrough({
        log,
        db: session.db,
        schema: next,
        from,
        through,
        onSetAside: (recorded, error) => {
          setAside += 1;
          options.onSetAside(recorded, error);
        },
        onProgress: (count, position) => {
          events += count;
          options.onProgress(count, position);
        },
        ...(signal ? { signal } : {}),
      });
    const end = await endOf(log);
    options.onStep('fold', end);
    let folded = await fold({ logId, position: undefined }, end);
    options.onStep('index', end);
    await makeIndexes(session.db, indexes);
    // What came while the indexes were made: the lock below shall wait for little.
    folded = await fold(folded, await endOf(log));
    options.onStep('swap', end);
    folded = await swap({
      databaseUrl,
      live,
      log,
      writing: session,
      folded,
      fold,
      ...(signal ? { signal } : {}),
    });
    await dropOld(session.db, live);
    return { events, position: folded.position ?? end, setAside };
  } catch (error) {
    // What is left of it after a lost connection is removed by the next one.
    await clearBeside(session.db, live).catch(() => undefined);
    throw error;
  } finally {
    await session.close();
  }
}

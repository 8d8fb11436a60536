import { sql } from 'kysely';
import type { LogPosition } from '#domain/events/index.js';
import type { EventLog } from '#events/event-log.js';
import type { ViewsDb } from '#schema/connect.js';
import { type Checkpoint, readCheckpoint } from '../run/checkpoint.js';

/** Where the live views stand; undefined when there are none yet. */
export async function liveCheckpoint(db: ViewsDb, live: string): Promise<Checkpoint | undefined> {
  const { rows } = await sql<{ found: boolean }>`
    select to_regclass(${`"${live}".checkpoints`}) is not null as found`.execute(db);
  return rows[0]?.found === true ? readCheckpoint(db, live) : undefined;
}

/** @throws when the log is empty: there is nothing to fold. */
export async function endOf(log: EventLog): Promise<LogPosition> {
  const end = await log.endPosition();
  if (!end) throw new Error('The event log is empty: there is nothing to replay.');
  return end;
}

/**
 * Live views of another log, or beyond the end of this one, are not older than a fold of this log: they are of another
 * time, and a fold need not reach them.
 */
export const isOfThisLog = (live: Checkpoint | undefined, logId: string, end: LogPosition): boolean =>
  live?.logId === logId && live.position !== undefined && live.position.commit <= end.commit;

import { sql } from 'kysely';
import type { LogPosition } from '#domain/events/index.js';
import type { ViewsDb } from '#schema/connect.js';
import { VIEW_TABLES } from '../rows/views.js';
import { beginCheckpoint, type Checkpoint, isAfter, readCheckpoint } from './checkpoint.js';

/** What the log says of itself at the start. */
export interface LogAtStart {
  readonly logId: string;
  readonly end: LogPosition | undefined;
}

/**
 * Where to go on from. Views of another log, or of a log that has been set back to before them, say nothing about this
 * one: they are emptied and folded again from its first event.
 * @param say is told why, when it comes to that.
 */
export async function prepareViews(
  db: ViewsDb,
  schema: string,
  log: LogAtStart,
  say: (message: string) => void,
): Promise<Checkpoint> {
  const found = await readCheckpoint(db, schema);
  const why = found && reasonToRebuild(found, log);
  if (found && why === undefined) return found;
  if (why !== undefined) say(`${why} Every view is folded again from the first event.`);
  await emptyViews(db, schema, log.logId);
  return { logId: log.logId, position: undefined };
}

function reasonToRebuild(checkpoint: Checkpoint, log: LogAtStart): string | undefined {
  if (checkpoint.logId !== log.logId) {
    return `The views were folded from the event log ${checkpoint.logId}, and this is ${log.logId}.`;
  }
  const { position } = checkpoint;
  if (position && (log.end === undefined || isAfter(position, log.end))) {
    return `The views are folded up to position ${position.commit}, and the event log ends at ${log.end?.commit ?? 'its beginning'}: it was set back.`;
  }
  return undefined;
}

/** Empties every view and puts the checkpoint at the beginning of a log, in one transaction. */
export async function emptyViews(db: ViewsDb, schema: string, logId: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const tables = sql.join(VIEW_TABLES.map((table) => sql.id(schema, table)));
    await sql`truncate ${tables}`.execute(trx);
    await beginCheckpoint(trx, schema, logId);
  });
}

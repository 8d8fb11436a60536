import { sql } from 'kysely';
import type { LogPosition } from '#domain/events/index.js';
import type { ViewsDb } from '#schema/connect.js';

/** How far the views are folded, and of which log. */
export interface Checkpoint {
  readonly logId: string;
  /** Undefined before the first event. */
  readonly position: LogPosition | undefined;
}

export const CHECKPOINT_NAME = 'views';

export async function readCheckpoint(db: ViewsDb, schema: string): Promise<Checkpoint | undefined> {
  const row = await db
    .withSchema(schema)
    .selectFrom('checkpoints')
    .select(['log_id', 'commit_position', 'prepare_position'])
    .where('name', '=', CHECKPOINT_NAME)
    .executeTakeFirst();
  if (!row) return undefined;
  const { commit_position: commit, prepare_position: prepare } = row;
  return {
    logId: row.log_id,
    position:
      commit === null || prepare === null ? undefined : { commit: BigInt(commit), prepare: BigInt(prepare) },
  };
}

/** Begins at the start of a log. */
export async function beginCheckpoint(db: ViewsDb, schema: string, logId: string): Promise<void> {
  const fresh = {
    log_id: logId,
    commit_position: null,
    prepare_position: null,
    updated_at: sql<string>`now()`,
  };
  await db
    .withSchema(schema)
    .insertInto('checkpoints')
    .values({ name: CHECKPOINT_NAME, ...fresh })
    .onConflict((conflict) => conflict.column('name').doUpdateSet(fresh))
    .execute();
}

/**
 * Moves the checkpoint, and with it locks its row until the transaction ends.
 * @returns false when the row is not where this writer left it: somebody else has folded on, and nothing may be written.
 */
export async function advanceCheckpoint(
  db: ViewsDb,
  schema: string,
  from: Checkpoint,
  to: LogPosition,
): Promise<boolean> {
  const result = await db
    .withSchema(schema)
    .updateTable('checkpoints')
    .set({
      commit_position: to.commit.toString(),
      prepare_position: to.prepare.toString(),
      updated_at: sql<string>`now()`,
    })
    .where('name', '=', CHECKPOINT_NAME)
    .where('log_id', '=', from.logId)
    .where('commit_position', 'is not distinct from', from.position?.commit.toString() ?? null)
    .where('prepare_position', 'is not distinct from', from.position?.prepare.toString() ?? null)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

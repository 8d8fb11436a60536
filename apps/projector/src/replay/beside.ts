import { sql } from 'kysely';
import { openSession, type ViewsDb, type ViewsSession } from '#schema/connect.js';
import { migrate } from '#schema/migrate.js';
import { replayLock } from '#schema/replay-lock.js';

/** Schemas that a replay may leave behind when it is killed: never read by anybody, removed by whoever comes next. */
export const besideOf = (live: string) =>
  ({ next: `${live}_next`, verified: `${live}_verify`, old: `${live}_old` }) as const;

/** Another replay is at work on the same views. */
export class ReplayRuns extends Error {
  override readonly name = 'ReplayRuns';
}

/**
 * Takes the replay's turn for as long as the session lives, so that a killed replay gives it up with its connection.
 * @throws ReplayRuns when another one has it.
 */
export async function takeTurn(db: ViewsDb, live: string): Promise<void> {
  const { rows } = await sql<{ locked: boolean }>`
    select pg_try_advisory_lock(hashtextextended(${replayLock(live)}, 0)) as locked`.execute(db);
  if (rows[0]?.locked !== true)
    throw new ReplayRuns('Another replay of these views runs. Wait for its end, or stop it, and try again.');
}

/** Removes what killed replays left. The turn must be held. */
export async function clearBeside(db: ViewsDb, live: string): Promise<void> {
  for (const schema of Object.values(besideOf(live)))
    await sql`drop schema if exists ${sql.id(schema)} cascade`.execute(db);
}

/** Removes the views that a swap has set aside. */
export async function dropOld(db: ViewsDb, live: string): Promise<void> {
  await sql`drop schema if exists ${sql.id(besideOf(live).old)} cascade`.execute(db);
}

/** The same as `clearBeside` for who is no replay: does nothing while one runs. */
export async function clearLeftovers(db: ViewsDb, live: string): Promise<readonly string[]> {
  const names = Object.values(besideOf(live));
  const { rows } = await sql<{ name: string }>`
    select nspname as name from pg_namespace where nspname = any(${names}::text[])`.execute(db);
  if (rows.length === 0) return [];
  const name = replayLock(live);
  const lock = await sql<{ locked: boolean }>`
    select pg_try_advisory_lock(hashtextextended(${name}, 0)) as locked`.execute(db);
  if (lock.rows[0]?.locked !== true) return [];
  try {
    await clearBeside(db, live);
  } finally {
    await sql`select pg_advisory_unlock(hashtextextended(${name}, 0))`.execute(db);
  }
  return rows.map((row) => row.name);
}

/** Opens a connection of a replay. No limit on statements: indexes of large tables take their time. */
export const openReplaySession = (databaseUrl: string): Promise<ViewsSession> =>
  openSession(databaseUrl, { applicationName: 'berth-replay', connectTimeoutMs: 5000 });

/**
 * Makes the tables of a fold beside the live one. What is lost with a crash here is folded again, so the session does not
 * wait for the disk; the commit that makes the tables live does, and with it everything before.
 * @returns the statements that make the indexes which folding does not need.
 */
export async function makeBeside(session: ViewsSession, schema: string): Promise<readonly string[]> {
  await migrate(session.client, schema);
  const { db } = session;
  await sql`set synchronous_commit to off`.execute(db);
  const { rows } = await sql<{ name: string; definition: string }>`
    select i.indexname as name, i.indexdef as definition
      from pg_indexes i
     where i.schemaname = ${schema}
       and not exists (select from pg_constraint c join pg_namespace n on n.oid = c.connamespace
                        where n.nspname = i.schemaname and c.conname = i.indexname)
     order by 1`.execute(db);
  for (const { name } of rows) await sql`drop index ${sql.id(schema, name)}`.execute(db);
  return rows.map((row) => row.definition);
}

export async function makeIndexes(db: ViewsDb, definitions: readonly string[]): Promise<void> {
  for (const definition of definitions) await sql.raw(definition).execute(db);
}

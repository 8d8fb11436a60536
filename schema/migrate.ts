import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** One numbered file of `schema/sql`. */
export interface Migration {
  /** `0001_views` */
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of the text: an applied migration never changes. */
  readonly checksum: string;
}

/** The one method of a `pg` client that is needed. */
export interface SqlClient {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

/** A database that was migrated by other code than this: a person must look. */
export class MigrationMismatch extends Error {
  override readonly name = 'MigrationMismatch';
}

/** From the sources `schema/sql` lies beside this file; from `dist` it lies two folders up, in `schema`. */
export function migrationsFolder(): string {
  const beside = fileURLToPath(new URL('./sql/', import.meta.url));
  return existsSync(beside) ? beside : fileURLToPath(new URL('../../schema/sql/', import.meta.url));
}

/** In order of their numbers. @throws when a number is missing or taken twice. */
export function readMigrations(folder = migrationsFolder()): readonly Migration[] {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  return files.map((file, index) => {
    const number = String(index + 1).padStart(4, '0');
    if (!file.startsWith(`${number}_`)) {
      throw new MigrationMismatch(
        `schema/sql/${file} should be number ${number}: numbers follow on one another.`,
      );
    }
    const sql = readFileSync(`${folder}/${file}`, 'utf8');
    return {
      name: file.replace(/\.sql$/, ''),
      sql,
      checksum: createHash('sha256').update(sql).digest('hex'),
    };
  });
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** What is locked while a schema is migrated; who moves schemas about takes it, too. */
export const migrationLock = (schema: string): string => `berth migrate ${schema}`;

/**
 * Brings one schema to the newest migration, in one transaction and under a lock: two processes that start together
 * agree, and a migration that fails leaves nothing behind. The client must not be in a transaction.
 * @returns the names applied now; empty when the schema was up to date.
 * @throws MigrationMismatch when an applied migration differs from the file, or the database is newer than the code.
 */
export async function migrate(
  client: SqlClient,
  schema: string,
  migrations: readonly Migration[] = readMigrations(),
): Promise<readonly string[]> {
  await client.query('begin');
  try {
    await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [migrationLock(schema)]);
    const applied = await applyPending(client, schema, migrations);
    await client.query('commit');
    return applied;
  } catch (error) {
    // The connection may be the thing that broke; the first error is the one to tell.
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

async function applyPending(
  client: SqlClient,
  schema: string,
  migrations: readonly Migration[],
): Promise<readonly string[]> {
  await client.query(`create schema if not exists ${quoted(schema)}`);
  await client.query(`set local search_path to ${quoted(schema)}`);
  await client.query(
    `create table if not exists migrations (
       name text primary key, checksum text not null, applied_at timestamptz not null default now())`,
  );
  const { rows } = await client.query('select name, checksum from migrations order by name');
  rows.forEach((row, index) => checkApplied(schema, row, migrations[index]));
  const pending = migrations.slice(rows.length);
  for (const migration of pending) {
    await client.query(migration.sql);
    await client.query('insert into migrations (name, checksum) values ($1, $2)', [
      migration.name,
      migration.checksum,
    ]);
  }
  return pending.map((migration) => migration.name);
}

function checkApplied(schema: string, row: Record<string, unknown>, migration: Migration | undefined): void {
  const applied = String(row['name']);
  const nextStep =
    `Start the version of Berth that wrote it, or drop the schema (DROP SCHEMA ${quoted(schema)} CASCADE): ` +
    'every view is folded again from the event log.';
  if (!migration) {
    throw new MigrationMismatch(
      `The views were migrated to ${applied} by a newer version of Berth than this one. ${nextStep}`,
    );
  }
  if (migration.name !== applied || migration.checksum !== row['checksum']) {
    throw new MigrationMismatch(
      `The views were built with another text of migration ${applied} than the ${migration.name} of this version. ${nextStep}`,
    );
  }
}

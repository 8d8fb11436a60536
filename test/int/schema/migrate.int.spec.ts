import { readFileSync, writeFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateTypes, typesFile } from '#schema/generate-types.js';
import { type Migration, migrate, readMigrations } from '#schema/migrate.js';
import { startPostgres, type TestPostgres } from '../../support/postgres.js';

describe('the migrations of the views', () => {
  let postgres: TestPostgres;
  const clients: pg.Client[] = [];
  const connect = async (url: string) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    clients.push(client);
    return client;
  };

  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await postgres.stop();
  });

  it('give the committed table types', async () => {
    const client = await connect(await postgres.createDatabase());
    const text = await generateTypes(client);
    if (process.env['UPDATE_TYPES']) writeFileSync(typesFile(), text);
    expect(readFileSync(typesFile(), 'utf8')).toBe(text);
  });

  it('are applied once when two processes start together', async () => {
    const url = await postgres.createDatabase();
    const [one, two] = await Promise.all([connect(url), connect(url)]);
    const applied = await Promise.all([migrate(one, 'views'), migrate(two, 'views')]);
    expect(applied.flat()).toEqual(readMigrations().map((migration) => migration.name));
    expect(await migrate(one, 'views')).toEqual([]);
  });

  it('build the same tables under another schema name beside the first', async () => {
    const client = await connect(await postgres.createDatabase());
    await migrate(client, 'views');
    await migrate(client, 'views_next');
    const tables = async (schema: string) =>
      (
        await client.query<{ name: string }>(
          'select tablename as name from pg_tables where schemaname = $1 order by 1',
          [schema],
        )
      ).rows.map((row) => row.name);
    expect(await tables('views_next')).toEqual(await tables('views'));
    expect(await tables('views')).toContain('calls');
  });

  const made = (name: string, sql: string): Migration => ({ name, sql, checksum: `${name} ${sql}` });

  it('leave nothing behind when one of them fails', async () => {
    const client = await connect(await postgres.createDatabase());
    const broken = [made('0001_a', 'create table a (x int)'), made('0002_b', 'create table b (x nonsense)')];
    await expect(migrate(client, 'views', broken)).rejects.toThrow(/nonsense/);
    const { rows } = await client.query("select 1 from pg_namespace where nspname = 'views'");
    expect(rows).toEqual([]);
  });

  it('refuse a database whose applied migration has another text, and say what to do', async () => {
    const client = await connect(await postgres.createDatabase());
    await migrate(client, 'views', [made('0001_a', 'create table a (x int)')]);
    await expect(migrate(client, 'views', [made('0001_a', 'create table a (y int)')])).rejects.toThrow(
      /another text of migration 0001_a .* folded again from the event log/s,
    );
  });

  it('refuse a database that a newer version has migrated', async () => {
    const client = await connect(await postgres.createDatabase());
    const first = made('0001_a', 'create table a (x int)');
    await migrate(client, 'views', [first, made('0002_b', 'create table b (x int)')]);
    await expect(migrate(client, 'views', [first])).rejects.toThrow(/0002_b by a newer version/);
  });
});

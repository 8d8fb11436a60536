import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { serverPid } from '../../apps/cli/src/up/postgres/cluster.js';
import {
  type EmbeddedPostgres,
  startPostgres as startServer,
} from '../../apps/cli/src/up/postgres/server.js';

/** A Postgres of a test's own: one cluster per test file, in a temp folder, gone when it stops. */
export interface TestPostgres {
  /** Makes an empty database and gives its connection string. */
  createDatabase(): Promise<string>;
  /** Drops every server process at once, as a crash would: the next start recovers. */
  kill(): Promise<void>;
  /** Ends it in order and keeps the data. */
  halt(): Promise<void>;
  /** Starts it again on the same data; connection strings stay as they were. */
  resume(): Promise<void>;
  stop(): Promise<void>;
}

/** A test's data need not outlive the machine, only the server. */
async function withoutFsync(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('alter system set fsync = off');
  await client.query('select pg_reload_conf()');
  await client.end();
}

export async function startPostgres(): Promise<TestPostgres> {
  const root = mkdtempSync(join(tmpdir(), 'berth-pg-'));
  const folder = join(root, 'postgres');
  const start = () => startServer({ folder, logFile: join(root, 'postgres.log') });
  let server: EmbeddedPostgres = await start();
  await withoutFsync(server.url);
  let databases = 0;
  return {
    createDatabase: async () => {
      const name = `test_${(databases += 1)}`;
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      await client.query(`create database ${name}`);
      await client.end();
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      return url.toString();
    },
    kill: async () => {
      const pid = serverPid(join(folder, 'data'));
      if (pid !== undefined) process.kill(pid, 'SIGQUIT');
      await server.ended;
    },
    halt: () => server.stop(),
    resume: async () => {
      server = await start();
    },
    stop: async () => {
      await server.stop();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

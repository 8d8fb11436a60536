import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { isAlive } from '#runtime/process-info.js';
import { startPostgres, type EmbeddedPostgres } from './server.js';
import { serverPid } from './cluster.js';
import { waitFor } from '../wait.js';

let root: string;
const running: EmbeddedPostgres[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth-pg-test-'));
});
afterEach(async () => {
  for (const server of running.splice(0)) await server.stop();
  rmSync(root, { recursive: true, force: true });
});

const start = async (folder: string) => {
  const server = await startPostgres({ folder, logFile: join(root, 'postgres.log') });
  running.push(server);
  return server;
};
const ask = async (url: string, text: string) => {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
};

it('starts on an empty folder whose path has spaces and quotes, keeps its data over a stop, and leaves no process', async () => {
  const folder = join(root, `a "folder", with spaces`);
  const first = await start(folder);
  await ask(first.url, 'CREATE TABLE kept (n int)');
  await ask(first.url, 'INSERT INTO kept VALUES (7)');
  const pid = serverPid(join(folder, 'data'))!;
  expect(isAlive(pid)).toBe(true);
  await first.stop();
  expect(isAlive(pid)).toBe(false);
  const second = await start(folder);
  expect(await ask(second.url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
});

it('keeps the socket in the temp folder when the path is too long for one', async () => {
  const folder = join(root, 'x'.repeat(60), 'y'.repeat(60));
  mkdirSync(folder, { recursive: true });
  const server = await start(folder);
  expect(server.url).toContain(encodeURIComponent(join(tmpdir(), 'berth-')));
  expect(await ask(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  await server.stop();
  rmSync(new URL(server.url).searchParams.get('host')!, { recursive: true });
});

it('comes back with every acknowledged row after a SIGKILL of the server', async () => {
  const folder = join(root, 'pg');
  const first = await start(folder);
  await ask(first.url, 'CREATE TABLE kept (n int)');
  await ask(first.url, 'INSERT INTO kept VALUES (1)');
  process.kill(serverPid(join(folder, 'data'))!, 'SIGKILL');
  expect(await first.ended).toMatch(/exit/);
  const second = await start(folder);
  expect(await ask(second.url, 'SELECT n FROM kept')).toEqual([{ n: 1 }]);
});

it('does not outlive the process that started it, even when that one is killed', async () => {
  const folder = join(root, 'pg');
  await (await start(folder)).stop();
  // The same start in a process of its own, from the same sources.
  const script = `
    import { startPostgres } from ${JSON.stringify(new URL('../../../../../dist/apps/cli/src/up/postgres/server.js', import.meta.url).href)};
    await startPostgres({ folder: ${JSON.stringify(folder)}, logFile: ${JSON.stringify(join(root, 'other.log'))} });
    console.log('ready'); setInterval(() => {}, 1000);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => owner.stdout.once('data', resolve));
  const pid = serverPid(join(folder, 'data'))!;
  expect(isAlive(pid)).toBe(true);
  owner.kill('SIGKILL');
  expect(await waitFor(() => !isAlive(pid), 15_000)).toBe(true);
});

it('stops a server that was left on its folder before it starts its own', async () => {
  const folder = join(root, 'pg');
  await start(folder);
  const left = serverPid(join(folder, 'data'))!;
  const second = await start(folder);
  expect(isAlive(left)).toBe(false);
  expect(await ask(second.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

it('sets a data folder of another version aside and says so', async () => {
  const folder = join(root, 'pg');
  const data = join(folder, 'data');
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const server = await start(folder);
  expect(server.note).toMatch(/set aside/);
  expect(readFileSync(join(data, 'PG_VERSION'), 'utf8').trim()).toBe(server.version.split('.')[0]);
});

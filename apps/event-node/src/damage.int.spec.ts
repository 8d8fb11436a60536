import { expect, test } from 'vitest';
import { closeSync, existsSync, openSync, readdirSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { START } from '@eventstore/db-client';
import { openLog } from './store/open-log.js';
import { collect, event, eventually, startTestNode, temporaryFolder } from './testing/node-fixture.js';

async function filledFolder(events: number) {
  const folder = temporaryFolder();
  const filled = await startTestNode({ dataDir: folder.path });
  await filled.client.appendToStream('log-identity', event('LogCreated', { logId: 'first' }), {
    expectedRevision: 'no_stream',
  });
  for (let done = 0; done < events; done += 50) {
    await filled.client.appendToStream(
      `filled-${done % 3}`,
      Array.from({ length: 50 }, (_, i) => event('Filled', { n: done + i, pad: 'f'.repeat(500) })),
    );
  }
  await filled.stop();
  return folder;
}

function overwrite(file: string, at: number, bytes: number): void {
  const handle = openSync(file, 'r+');
  writeSync(handle, Buffer.alloc(bytes, 0x5a), 0, bytes, at);
  closeSync(handle);
}

test('a file damaged in its middle is set aside, its sound beginning taken over, and the loss is said', async () => {
  const folder = await filledFolder(1500);
  const file = join(folder.path, 'log.db');
  overwrite(file, Math.floor(statSync(file).size / 2), 200_000);
  const said: string[] = [];
  const again = await startTestNode({ dataDir: folder.path, say: (message) => said.push(message) });
  expect(said[0]).toMatch(/is damaged .*It was moved to /);
  expect(said[1]).toMatch(/kept \d+ events up to .*; lost: /);
  const aside = readdirSync(folder.path).filter((name) => name.startsWith('damaged-'));
  expect(aside).toHaveLength(1);
  expect(existsSync(join(folder.path, aside[0] ?? '', 'log.db'))).toBe(true);

  const events = await collect(again.client.readAll({ fromPosition: START }));
  const numbers = events
    .filter((e) => e.event?.type === 'Filled')
    .map((e) => Number((e.event?.data as Record<string, unknown>)['n']));
  expect(numbers.length).toBeGreaterThan(100);
  expect(numbers.length).toBeLessThan(1500);
  expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, i) => i));
  expect((await again.node.verify()).faults).toEqual([]);
  // Readers must see another log.
  await expect(collect(again.client.readStream('log-identity'))).rejects.toMatchObject({
    type: 'stream-not-found',
  });
  expect((await again.client.appendToStream('filled-0', event())).success).toBe(true);
  await again.stop();
  folder.remove();
});

test('a file that is no database at all is set aside, and the node begins a new log', async () => {
  const folder = await filledFolder(100);
  overwrite(join(folder.path, 'log.db'), 0, 4096);
  const said: string[] = [];
  const again = await startTestNode({ dataDir: folder.path, say: (message) => said.push(message) });
  expect(said.join('\n')).toMatch(/kept 0 events; lost: /);
  expect((await again.client.appendToStream('new-1', event())).nextExpectedRevision).toBe(0n);
  await again.stop();
  folder.remove();
});

test('damage that was met in use is treated at the next start', async () => {
  const folder = await filledFolder(200);
  writeFileSync(join(folder.path, 'log-damaged'), 'database disk image is malformed\n');
  const said: string[] = [];
  const again = await startTestNode({ dataDir: folder.path, say: (message) => said.push(message) });
  expect(said[1]).toMatch(/kept 202 events/);
  expect(existsSync(join(folder.path, 'log-damaged'))).toBe(false);
  await again.stop();
  folder.remove();
});

test('a full disk refuses appends with a typed error, reads go on, and appends too when there is room', async () => {
  const folder = temporaryFolder();
  const store = openLog(folder.path, { say: () => undefined, onDamage: () => undefined, now: Date.now });
  const proposed = (n: number) => ({
    id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    type: 'Big',
    json: false,
    data: Buffer.alloc(50_000),
    customMetadata: Buffer.alloc(0),
  });
  await store.append('disk-1', 'any', [proposed(1)]);
  store.db.exec('pragma max_page_count = 40');
  const refusals = await Promise.allSettled([
    store.append('disk-1', 'any', [proposed(2), proposed(3)]),
    store.append('disk-2', 'any', [proposed(4)]),
  ]);
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({ status: 'rejected', reason: { code: 'storage-failed' } });
    expect(String((refusal as PromiseRejectedResult).reason)).toMatch(/disk .* is full/);
  }
  const range = store.reader.visible('disk-1');
  expect(store.reader.streamFrom(range, 0)).toHaveLength(1);
  store.db.exec('pragma max_page_count = 100000');
  // The ids of what failed are not taken for known ones.
  expect(await store.append('disk-1', 'any', [proposed(2), proposed(3)])).toMatchObject({ revision: 2 });
  await store.close();
  folder.remove();
});

const full = /The disk that holds the event log is full: nothing was written, reads go on\./;
const big = () => event('Big', { pad: 'b'.repeat(100_000) });

test('a client meets a full disk as typed errors, reads on meanwhile, and appends again when there is room', async () => {
  const running = await startTestNode();
  const { node, client } = running;
  await client.appendToStream('full-1', event());
  const followed: (number | string)[] = [];
  const subscription = client.subscribeToStream('full-1');
  subscription.on('data', ({ event: e }) => followed.push(Number(e?.revision)));
  subscription.on('error', (error) => followed.push(String(error)));
  await eventually(() => followed.length === 1, 'the subscription has the first event');
  node.database.exec('pragma max_page_count = 30');
  for (let i = 0; i < 3; i++) {
    await expect(client.appendToStream('full-1', big())).rejects.toMatchObject({ type: 'unknown' });
    expect(await collect(client.readStream('full-1'))).toHaveLength(1);
  }
  node.database.exec('pragma max_page_count = 1000000');
  expect((await client.appendToStream('full-1', big())).nextExpectedRevision).toBe(1n);
  await eventually(() => followed.length === 2, 'the subscription has the second event');
  expect(followed).toEqual([0, 1]);
  await subscription.unsubscribe();

  // The other path of an append, which carries its own credentials, gives the sentence as well.
  node.database.exec('pragma max_page_count = 30');
  const credentials = { username: 'admin', password: 'any' };
  await expect(client.appendToStream('full-1', big(), { credentials })).rejects.toMatchObject({
    type: 'unavailable',
    message: expect.stringMatching(full) as string,
  });
  await running.stop();
});

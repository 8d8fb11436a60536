import { afterEach, expect, test } from 'vitest';
import { appendFileSync, copyFileSync, readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { killLeftovers, startNodeProcess } from './testing/node-process.js';
import {
  collect,
  connect,
  disposeWithin,
  event,
  startTestNode,
  temporaryFolder,
} from './testing/node-fixture.js';

afterEach(killLeftovers);

test('a write-ahead log whose last write is torn is read as far as it is whole', async () => {
  const folder = temporaryFolder();
  const copy = temporaryFolder();
  const node = await startNodeProcess(folder.path);
  const client = connect(node.connectionString);
  const stream = 'torn-1';
  for (let i = 0; i < 20; i++) await client.appendToStream(stream, event('T', { i }));
  await client.appendToStream(stream, event('T', { i: 20, pad: 'x'.repeat(20_000) }));
  await node.kill();
  await disposeWithin(client);
  for (const file of readdirSync(folder.path).filter((name) => name.startsWith('log.db'))) {
    copyFileSync(join(folder.path, file), join(copy.path, file));
  }
  const wal = join(copy.path, 'log.db-wal');
  truncateSync(wal, statSync(wal).size - 5000);
  appendFileSync(wal, Buffer.alloc(1234, 0xab));

  const torn = await startTestNode({ dataDir: copy.path });
  const events = await collect(torn.client.readStream(stream));
  expect(events.map((e) => Number(e.event?.revision))).toEqual(Array.from({ length: 20 }, (_, i) => i));
  expect((await torn.client.appendToStream(stream, event())).nextExpectedRevision).toBe(20n);
  expect((await torn.node.verify()).faults).toEqual([]);
  await torn.stop();
  copy.remove();
  folder.remove();
});

test('two nodes on one folder: the second says so in one sentence and ends', async () => {
  const folder = temporaryFolder();
  const first = await startNodeProcess(folder.path);
  await expect(startNodeProcess(folder.path)).rejects.toThrow(/Another event node is running on/);
  await first.kill();
  // A crash leaves no stale lock.
  const next = await startNodeProcess(folder.path);
  expect(await next.terminate()).toBe(0);
  folder.remove();
});

test('the node stops in order when its supervisor is gone', async () => {
  const folder = temporaryFolder();
  const node = await startNodeProcess(folder.path, []);
  const client = connect(node.connectionString);
  await client.appendToStream('order-1', event());
  const ended = new Promise<number | null>((resolve) => node.child.once('exit', (code) => resolve(code)));
  node.child.disconnect();
  expect(await ended).toBe(0);
  await disposeWithin(client);
  folder.remove();
});

import { afterEach, expect, test } from 'vitest';
import { fork } from 'node:child_process';
import { appendFileSync, copyFileSync, readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { START } from '@eventstore/db-client';
import { killLeftovers, startNodeProcess, track } from './testing/node-process.js';
import {
  collect,
  connect,
  disposeWithin,
  event,
  eventually,
  startTestNode,
  temporaryFolder,
} from './testing/node-fixture.js';

const appender = fileURLToPath(
  new URL('../../../dist/apps/event-node/src/testing/appender-process.js', import.meta.url),
);

afterEach(killLeftovers);

interface Acknowledged {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
}

async function everyEvent(connectionString: string): Promise<Map<string, string>> {
  const client = connect(connectionString);
  const events = await collect(client.readAll({ fromPosition: START }));
  await disposeWithin(client);
  return new Map(events.map(({ event: e }) => [e?.id ?? '', `${e?.streamId}@${e?.revision}`]));
}

test(
  'whatever was acknowledged is there after kill -9 at any moment, and nothing else is torn',
  { timeout: 300_000 },
  async () => {
    const folder = temporaryFolder();
    const acknowledged: Acknowledged[] = [];
    for (let round = 0; round < 5; round++) {
      const node = await startNodeProcess(folder.path);
      const writing = track(
        fork(appender, [node.connectionString, `round${round}`, '16'], {
          stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
        }),
      );
      const ended = new Promise((resolve) => writing.once('exit', resolve));
      const before = acknowledged.length;
      writing.on('message', (message) => acknowledged.push(message as Acknowledged));
      // Another number of appends each time, so that the kill meets the group commit in other places.
      await eventually(() => acknowledged.length > before + 40 + round * 37, 'appends are acknowledged');
      await node.kill();
      await ended;
    }
    const last = await startNodeProcess(folder.path);
    const found = await everyEvent(last.connectionString);
    for (const { id, stream, revision } of acknowledged) expect(found.get(id)).toBe(`${stream}@${revision}`);
    expect(acknowledged.length).toBeGreaterThan(200);
    expect(await last.terminate()).toBe(0);
    const again = await startTestNode({ dataDir: folder.path });
    expect((await again.node.verify()).faults).toEqual([]);
    await again.stop();
    folder.remove();
  },
);

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

import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { event, startTestNode, temporaryFolder, type TestNode } from '../testing/node-fixture.js';
import { openBeside, openDatabase, query, type Sqlite } from './database.js';
import { openLog } from './open-log.js';

/** How many transactions a database commits while the work is done. */
async function commitsOf(db: Sqlite, work: () => Promise<unknown>): Promise<number> {
  const exec = vi.spyOn(db, 'exec');
  try {
    await work();
    return exec.mock.calls.filter(([sql]) => sql === 'commit').length;
  } finally {
    exec.mockRestore();
  }
}

const proposed = (n: number) => ({
  id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  type: 'Grouped',
  json: false,
  data: Buffer.alloc(300),
  customMetadata: Buffer.alloc(0),
});

test('a commit reaches the disk before anybody is answered, on both connections to the log', () => {
  const folder = temporaryFolder();
  const file = `${folder.path}/log.db`;
  const [first, second] = [openDatabase(file), openBeside(file)];
  for (const db of [first, second]) {
    // 2 is FULL: the write-ahead log is synced at every commit. NORMAL (1) syncs it at a checkpoint only.
    expect(query<[number]>(db, 'pragma synchronous').get([])).toEqual([2]);
    expect(query<[string]>(db, 'pragma journal_mode').get([])).toEqual(['wal']);
    db.close();
  }
  folder.remove();
});

test('appends that wait together are one transaction, as far as 512 of them', async () => {
  const folder = temporaryFolder();
  const store = openLog(folder.path, { say: () => undefined, onDamage: () => undefined, now: Date.now });
  const append = (n: number) => store.append(`s-${n % 7}`, 'any', [proposed(n)]);
  const many = (from: number, count: number) => () =>
    Promise.all(Array.from({ length: count }, (_, i) => append(from + i)));
  expect(await commitsOf(store.db, many(0, 1))).toBe(1);
  expect(await commitsOf(store.db, many(1, 512))).toBe(1);
  expect(await commitsOf(store.db, many(1000, 1025))).toBe(3);
  const oneByOne = async () => {
    for (let n = 5000; n < 5010; n++) await append(n);
  };
  expect(await commitsOf(store.db, oneByOne)).toBe(10);
  await store.close();
  folder.remove();
});

let running: TestNode;
beforeAll(async () => {
  running = await startTestNode();
});
afterAll(() => running.stop());

test('128 appends in flight over the wire share their commits, three to one at least', async () => {
  const { client, node } = running;
  await client.appendToStream('warm-1', event());
  let appended = 0;
  const writer = async (index: number) => {
    for (let n = 0; n < 10; n++) {
      await client.appendToStream(`flight-${index}`, event('T', { n }));
      appended++;
    }
  };
  const commits = await commitsOf(node.database, () =>
    Promise.all(Array.from({ length: 128 }, (_, i) => writer(i))),
  );
  expect(appended).toBe(1280);
  expect(commits).toBeLessThan(appended / 3);
});

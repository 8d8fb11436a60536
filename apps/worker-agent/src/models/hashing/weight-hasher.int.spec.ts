import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLogger } from '#runtime/logger.js';
import { Sha256 } from './sha256.js';
import { WeightHasher } from './weight-hasher.js';

let folder: string;
let hasher: WeightHasher | undefined;
const log = createLogger('hash-test');
log.level = 'silent';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-hash-'));
});
afterEach(async () => {
  await hasher?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function fileOf(bytes: number) {
  const file = join(folder, 'weights');
  const data = Buffer.alloc(bytes, 'weights of a ship');
  await writeFile(file, data);
  const { mtimeMs } = await stat(file);
  return { data, toHash: { file, bytes, modifiedMs: mtimeMs } };
}
/** What it is told first. */
const heard = (memory: string, want: Awaited<ReturnType<typeof fileOf>>['toHash']) =>
  new Promise<string>((resolve) => {
    hasher = new WeightHasher({ memory, log, onHashed: (_file, { sha256 }) => resolve(sha256) });
    void hasher.want([want]);
  });

test('goes on from the state that an earlier run put aside', async () => {
  const { data, toHash } = await fileOf(9 * 1024 * 1024 + 5);
  const memory = join(folder, 'hashes.json');
  // A state that belongs to other bytes shows that it is where the hash goes on.
  const other = new Sha256();
  other.update(Buffer.alloc(4 * 1024 * 1024, 'x'));
  const begun = {
    [toHash.file]: { bytes: toHash.bytes, modifiedMs: toHash.modifiedMs, seconds: 1, state: other.state },
  };
  await writeFile(memory, JSON.stringify({ hashed: {}, begun }));
  const mixed = Buffer.concat([Buffer.alloc(4 * 1024 * 1024, 'x'), data.subarray(4 * 1024 * 1024)]);
  expect(await heard(memory, toHash)).toBe(createHash('sha256').update(mixed).digest('hex'));
});

test('begins anew when the file is not the one that was begun, or the memory is damaged', async () => {
  const { data, toHash } = await fileOf(5_000_000);
  const right = createHash('sha256').update(data).digest('hex');
  const memory = join(folder, 'hashes.json');
  const state = { words: [1, 2, 3, 4, 5, 6, 7, 8], bytes: 64 };
  for (const content of [
    '{"hashed":',
    JSON.stringify({ begun: { [toHash.file]: { bytes: toHash.bytes, modifiedMs: 1, seconds: 1, state } } }),
    JSON.stringify({ begun: { [toHash.file]: { ...toHash, seconds: 1, state: { ...state, bytes: 63 } } } }),
  ]) {
    await writeFile(memory, content);
    expect(await heard(memory, toHash)).toBe(right);
    await hasher?.stop();
    expect(await readFile(memory, 'utf8')).toContain(right);
  }
});

test('rests while it is told to, and goes on afterwards with what it was at', async () => {
  const { data, toHash } = await fileOf(9_000_000);
  const hashed: number[] = [];
  const rests = new WeightHasher({ log, onHashed: (_file, { seconds }) => hashed.push(seconds) });
  rests.pause(true);
  await rests.want([toHash]);
  const restingSinceMs = performance.now();
  try {
    // Another one reads the whole of it meanwhile.
    await heard(join(folder, 'hashes.json'), toHash);
    expect(hashed).toEqual([]);
    const restedSeconds = (performance.now() - restingSinceMs) / 1000;
    const startedMs = performance.now();
    rests.pause(false);
    await vi.waitFor(() => expect(hashed).toHaveLength(1), 40_000);
    expect(rests.hashOf(toHash.file)?.sha256).toBe(createHash('sha256').update(data).digest('hex'));
    // A rest is no work.
    const passedSeconds = (performance.now() - startedMs) / 1000;
    expect(hashed[0]).toBeLessThan(passedSeconds + restedSeconds / 2 + 0.01);
  } finally {
    await rests.stop();
  }
});

/** Threads of this process that take only the processor time that nobody else wants. */
async function lowestThreads(): Promise<readonly string[]> {
  const tasks = await readdir('/proc/self/task');
  const lowest = await Promise.all(
    tasks.map(async (task) => {
      // One that ends meanwhile has no priority any more.
      const stat = await readFile(`/proc/self/task/${task}/stat`, 'utf8').catch(() => '');
      // The 19th field; the name before it may hold spaces.
      return stat.slice(stat.lastIndexOf(')')).split(' ')[17] === '19' ? [task] : [];
    }),
  );
  return lowest.flat();
}

test.runIf(process.platform === 'linux')('hashes in a thread of the lowest priority', async () => {
  // Threads of the tests before may be about to end.
  const before = await lowestThreads();
  const { toHash } = await fileOf(9_000_000);
  const rests = new WeightHasher({ log, onHashed: () => undefined });
  rests.pause(true);
  try {
    await rests.want([toHash]);
    await vi.waitFor(async () => {
      const fresh = (await lowestThreads()).filter((task) => !before.includes(task));
      expect(fresh).toHaveLength(1);
    }, 10_000);
  } finally {
    await rests.stop();
  }
});

test('ends at once while it rests', async () => {
  const { toHash } = await fileOf(9_000_000);
  const rests = new WeightHasher({ log, onHashed: () => undefined });
  rests.pause(true);
  await rests.want([toHash]);
  await rests.stop();
  expect(rests.hashOf(toHash.file)).toBeUndefined();
});

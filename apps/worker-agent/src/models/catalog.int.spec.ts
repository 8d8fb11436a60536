import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CatalogEvent } from '#domain/events/index.js';
import { modelKey, workerId, type WorkerId } from '#domain/ids.js';
import { openEventLog } from '#events/connect.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { newId } from '#runtime/ids.js';
import { createLogger } from '#runtime/logger.js';
import { skippedWhen } from '#runtime/testing/skipped.js';
import { startEmbeddedNode, type EmbeddedNode } from '../../../../libs/events/src/testing/embedded-node.js';
import { damage, makeModel, type Preset } from '../make-model/index.js';
import { startCatalog, type Catalog } from './catalog.js';

let node: EmbeddedNode;
let made: string;
let root: string;
let log: EventLog;
let worker: WorkerId;
let catalog: Catalog | undefined;
const logger = createLogger('catalog-test');
logger.level = 'silent';

beforeAll(async () => {
  node = await startEmbeddedNode();
  made = await mkdtemp(join(tmpdir(), 'berth-made-'));
  for (const preset of ['chat-a', 'chat-b'] as const) {
    await makeModel({ preset, file: join(made, preset) });
  }
});
afterAll(async () => {
  await node.stop();
  await rm(made, { recursive: true, force: true });
});
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-catalog-'));
  worker = workerId(newId());
  log = openEventLog({ url: node.url, by: 'test', now: Date.now, log: logger });
});
afterEach(async () => {
  await catalog?.stop();
  catalog = undefined;
  await log.close();
  await rm(root, { recursive: true, force: true });
});

const start = async (folder = root) => {
  const roots = [{ name: 'models' as const, path: folder }];
  catalog = await startCatalog({
    log,
    workerId: worker,
    models: folder,
    logger,
    roots,
    home: join(root, '.home'),
  });
  return catalog;
};
async function put(preset: Preset, name: string): Promise<string> {
  const file = join(root, name);
  await mkdir(dirname(file), { recursive: true });
  await copyFile(join(made, preset), file);
  return file;
}
async function written(): Promise<readonly string[]> {
  const all: string[] = [];
  for await (const { event } of log.readForwards<CatalogEvent>(streams.catalog(worker))) {
    if (event.type !== 'WeightsHashed') all.push(`${event.type} ${event.data.modelKey}`);
  }
  return all;
}
/** Waits for the fact; the figure is a limit, not a measure. */
async function until(expected: readonly string[]): Promise<void> {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const now = await written();
    if (JSON.stringify(now) === JSON.stringify(expected)) return;
    if (Date.now() > deadline) expect(now).toEqual(expected);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test('what is there is in the log when it has started, with its files at hand', async () => {
  const file = await put('chat-a', 'o/r/m-F16.gguf');
  const started = await start();
  expect(await written()).toEqual(['ModelFound o/r']);
  expect(started.count()).toBe(1);
  expect(started.filesOf(modelKey('o/r'), 'F16')).toEqual([file]);
  expect(started.filesOf(modelKey('o/r'), 'Q8_0')).toBeUndefined();
  expect(started.filesOf(modelKey('x/y'), 'F16')).toBeUndefined();
});

test('a rescan and a new start write nothing when nothing changed', async () => {
  await put('chat-a', 'o/r/m-F16.gguf');
  await (await start()).rescan();
  await catalog?.stop();
  await start();
  expect(await written()).toEqual(['ModelFound o/r']);
});

test('a model that comes, changes and goes is an event each time', async () => {
  await start();
  const file = await put('chat-a', 'o/r/m-F16.gguf');
  await until(['ModelFound o/r']);
  await put('chat-b', 'o/r/m-Q8_0.gguf');
  await until(['ModelFound o/r', 'ModelChanged o/r']);
  await rm(dirname(file), { recursive: true });
  await until(['ModelFound o/r', 'ModelChanged o/r', 'ModelGone o/r']);
  expect(catalog?.count()).toBe(0);
});

test('a file that is spoilt under a running agent is told as broken', async () => {
  const file = await put('chat-a', 'o/r/m-F16.gguf');
  await start();
  await damage(file, 'truncated');
  await until(['ModelFound o/r', 'ModelChanged o/r']);
  expect(catalog?.models()[0]?.artifacts[0]?.broken).toContain('ends too early');
});

test('a download is no event before it has its name', async () => {
  await start();
  const part = await put('chat-a', 'o/r/m-F16.gguf.part');
  await catalog?.rescan();
  expect(await written()).toEqual([]);
  await rename(part, part.replace('.part', ''));
  await until(['ModelFound o/r']);
});

test('a root that is made later is seen', async () => {
  await start(join(root, 'not/yet'));
  await put('chat-a', 'not/yet/o/r/m-F16.gguf');
  await until(['ModelFound o/r']);
});

test('what changed while no agent ran is told by the next', async () => {
  const file = await put('chat-a', 'o/r/m-F16.gguf');
  await put('chat-b', 'p/q/m-F16.gguf');
  await (await start()).stop();
  await rm(file);
  await damage(join(root, 'p/q/m-F16.gguf'), 'bad-magic');
  await start();
  await until(['ModelFound o/r', 'ModelFound p/q', 'ModelGone o/r', 'ModelChanged p/q']);
});

test('while the log is away models are known, and they are written when it is back', async () => {
  await start();
  await node.kill9();
  await put('chat-a', 'o/r/m-F16.gguf');
  const deadline = Date.now() + 20_000;
  while (catalog?.count() !== 1 && Date.now() < deadline) await new Promise((r) => setTimeout(r, 50));
  expect(catalog?.count()).toBe(1);
  await node.restart();
  await until(['ModelFound o/r']);
});

/** Events of the catalogue of one type, once there are so many. */
async function events<T extends CatalogEvent['type']>(type: T, count: number) {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const all: Extract<CatalogEvent, { type: T }>['data'][] = [];
    for await (const { event } of log.readForwards<CatalogEvent>(streams.catalog(worker))) {
      if (event.type === type) all.push(event.data as (typeof all)[number]);
    }
    if (all.length >= count || Date.now() > deadline) return all;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test('each weight file is hashed once, in the background, and again only when it changed', async () => {
  const file = await put('chat-a', 'o/r/m-F16.gguf');
  const sha256 = async () =>
    createHash('sha256')
      .update(await readFile(file))
      .digest('hex');
  await start();
  const first = await sha256();
  expect(await events('WeightsHashed', 1)).toMatchObject([
    { modelKey: 'o/r', file: 'm-F16.gguf', sha256: first },
  ]);
  await catalog?.stop();
  await start();
  await catalog?.rescan();
  await copyFile(join(made, 'chat-b'), file);
  const all = await events('WeightsHashed', 2);
  expect(all.map((e) => e.sha256)).toEqual([first, await sha256()]);
});

test('a marker that the files deny is put right in its place, and the log is told once', async () => {
  await put('chat-a', 'o/r/m-F16.gguf');
  const marker = join(root, 'o/r/berth.json');
  await writeFile(marker, JSON.stringify({ aliases: ['ship'], trainedContextTokens: 7 }));
  const started = await start();
  const found = started.models()[0];
  expect(found?.aliases).toEqual(['ship']);
  expect(found?.marker).toMatchObject({
    source: 'beside',
    corrections: [{ fact: 'trainedContextTokens', said: '7', found: String(found?.trainedContextTokens) }],
  });
  expect(JSON.parse(await readFile(marker, 'utf8'))).toMatchObject({
    aliases: ['ship'],
    trainedContextTokens: found?.trainedContextTokens,
  });
  await started.rescan();
  expect(await written()).toEqual(['ModelFound o/r']);
});

test.skipIf(
  skippedWhen(process.getuid?.() !== 0, 'a read-only folder of models is mounted, which needs root'),
)('where a folder of our own root is read-only, what was put right lies in a sidecar', async () => {
  const folder = join(root, 'o/r');
  await mkdir(folder, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder]);
  try {
    await put('chat-a', 'o/r/m-F16.gguf');
    await writeFile(
      join(folder, 'berth.json'),
      JSON.stringify({ trainedContextTokens: 7, aliases: ['ship'] }),
    );
    execFileSync('mount', ['-o', 'remount,ro', folder]);
    const started = await start();
    const found = started.models()[0];
    expect(found?.marker).toMatchObject({
      source: 'sidecar',
      corrections: [{ fact: 'trainedContextTokens', said: '7', found: String(found?.trainedContextTokens) }],
    });
    expect(found?.aliases).toEqual(['ship']);
    await started.rescan();
    expect(await written()).toEqual(['ModelFound o/r']);
    await catalog?.stop();
  } finally {
    execFileSync('umount', ['-l', folder]);
  }
});

test('where a folder is not ours to write, what was put right lies in a sidecar', async () => {
  await put('chat-a', 'models--o--r/snapshots/v/m-F16.gguf');
  const marker = join(root, 'models--o--r/snapshots/v/berth.json');
  await writeFile(marker, JSON.stringify({ trainedContextTokens: 7, description: 'a ship' }));
  const roots = [{ name: 'huggingface' as const, path: root }];
  const home = join(root, '.home');
  catalog = await startCatalog({ log, workerId: worker, models: root, logger, roots, home });
  expect(catalog.models()[0]?.marker).toMatchObject({ source: 'sidecar', description: 'a ship' });
  expect(JSON.parse(await readFile(marker, 'utf8'))).toMatchObject({ trainedContextTokens: 7 });
  expect(await readFile(join(home, 'markers', 'o%2Fr.json'), 'utf8')).toContain('corrections');
  await catalog.rescan();
  expect(await written()).toEqual(['ModelFound o/r']);
  // Another word of its owner is heard again.
  await writeFile(marker, JSON.stringify({ description: 'another ship' }));
  await until(['ModelFound o/r', 'ModelChanged o/r']);
  expect(catalog.models()[0]?.marker).toMatchObject({ source: 'beside', description: 'another ship' });
});

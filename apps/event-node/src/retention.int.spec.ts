import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { BACKWARDS, END, type EventStoreDBClient, START } from '@eventstore/db-client';
import { collect, event, eventually, startTestNode, type TestNode } from './testing/node-fixture.js';

let running: TestNode;
let client: EventStoreDBClient;
let clockMs = Date.now();
beforeAll(async () => {
  running = await startTestNode({ now: () => clockMs });
  client = running.client;
});
afterAll(() => running.stop());

const fresh = () => `thing-${randomUUID()}`;
// The node's clock is the test's: a deadline against it would be over at once.
const far = { deadline: 10 ** 9 };
const write = async (stream: string, count: number) => {
  await client.appendToStream(
    stream,
    Array.from({ length: count }, () => event()),
    far,
  );
};
const forwards = async (stream: string, fromRevision: bigint | typeof START = START) =>
  (await collect(client.readStream(stream, { fromRevision }))).map((e) => Number(e.event?.revision));
const backwards = async (stream: string, fromRevision: bigint | typeof END = END) =>
  (await collect(client.readStream(stream, { direction: BACKWARDS, fromRevision }))).map((e) =>
    Number(e.event?.revision),
  );
const setRaw = (stream: string, document: Record<string, unknown>) =>
  client.appendToStream(`$$${stream}`, event('$metadata', document), far);

test('$maxCount and $tb hide events in both directions, and the stricter one holds', async () => {
  const stream = fresh();
  await write(stream, 10);
  await setRaw(stream, { $maxCount: 4 });
  expect(await forwards(stream)).toEqual([6, 7, 8, 9]);
  expect(await backwards(stream)).toEqual([9, 8, 7, 6]);
  await setRaw(stream, { $maxCount: 4, $tb: 8 });
  expect(await forwards(stream)).toEqual([8, 9]);
  await setRaw(stream, { $maxCount: 3, $tb: 2 });
  expect(await forwards(stream)).toEqual([7, 8, 9]);
  await write(stream, 1);
  expect(await forwards(stream)).toEqual([8, 9, 10]);
});

test('$maxAge hides what is older, counted in seconds of the clock', async () => {
  const stream = fresh();
  await setRaw(stream, { $maxAge: 60 });
  await write(stream, 3);
  clockMs += 50_000;
  await write(stream, 2);
  expect(await forwards(stream)).toEqual([0, 1, 2, 3, 4]);
  clockMs += 15_000;
  expect(await forwards(stream)).toEqual([3, 4]);
  expect(await backwards(stream)).toEqual([4, 3]);
  clockMs += 60_000;
  expect(await forwards(stream)).toEqual([]);
});

test('an event of exactly $maxAge is shown, and a millisecond later no more', async () => {
  const stream = fresh();
  await setRaw(stream, { $maxAge: 60 });
  await write(stream, 1);
  clockMs += 60_000;
  expect(await forwards(stream)).toEqual([0]);
  expect(await backwards(stream)).toEqual([0]);
  clockMs += 1;
  expect(await forwards(stream)).toEqual([]);
  expect(await backwards(stream)).toEqual([]);
});

test('values that are no integers are ignored', async () => {
  const stream = fresh();
  await write(stream, 3);
  await setRaw(stream, { $maxCount: '1', $tb: 1.5, $maxAge: null });
  expect(await forwards(stream)).toEqual([0, 1, 2]);
});

test('a stream that is hidden as a whole is empty, not missing', async () => {
  const stream = fresh();
  await write(stream, 3);
  await setRaw(stream, { $tb: 3 });
  expect(await forwards(stream)).toEqual([]);
  expect(await backwards(stream)).toEqual([]);
});

test('a metadata stream shows its newest event alone', async () => {
  const stream = fresh();
  await client.setStreamMetadata(stream, { owner: 'a' }, far);
  await client.setStreamMetadata(stream, { owner: 'b' }, far);
  expect(await forwards(`$$${stream}`)).toEqual([1]);
  expect((await client.getStreamMetadata(stream)).metadata).toEqual({ owner: 'b' });
});

test('metadata alone lets stream_exists pass, and the stream itself is not found', async () => {
  const stream = fresh();
  await client.setStreamMetadata(stream, { owner: 'a' }, far);
  await expect(forwards(stream)).rejects.toMatchObject({ type: 'stream-not-found' });
  const first = await client.appendToStream(stream, event(), { ...far, expectedRevision: 'stream_exists' });
  expect(first.nextExpectedRevision).toBe(0n);
});

test('times never run backwards, even when the clock does', async () => {
  const stream = fresh();
  await write(stream, 1);
  clockMs -= 3_600_000;
  await write(stream, 1);
  clockMs += 3_600_000;
  const [first, second] = await collect(client.readStream(stream));
  expect(second?.event?.created.getTime()).toBe(first?.event?.created.getTime());
});

test('$all shows what retention hides until a scavenge removes it; revisions and positions stay', async () => {
  const own = await startTestNode();
  try {
    const streams = { counted: fresh(), deleted: fresh(), revived: fresh(), dead: fresh(), plain: fresh() };
    for (const stream of Object.values(streams)) {
      await own.client.appendToStream(
        stream,
        Array.from({ length: 1200 }, (_, i) => event('Filled', { i, pad: 'z'.repeat(200) })),
      );
    }
    await own.client.setStreamMetadata(streams.counted, { maxCount: 5 });
    await own.client.setStreamMetadata(streams.counted, { maxCount: 3 });
    await own.client.deleteStream(streams.deleted);
    await own.client.deleteStream(streams.revived);
    await own.client.appendToStream(streams.revived, [event('Again'), event('Again')]);
    await own.client.tombstoneStream(streams.dead);
    const before = await collect(own.client.readAll({ fromPosition: START }));
    expect(before.filter((e) => e.event?.streamId === streams.counted)).toHaveLength(1200);

    const report = await own.node.scavenge();
    expect(report.removedEvents).toBe(1197 + 1199 + 1200 + 1200 + 2);

    const after = await collect(own.client.readAll({ fromPosition: START }));
    const left = (stream: string) =>
      after.filter((e) => e.event?.streamId === stream).map((e) => Number(e.event?.revision));
    expect(left(streams.counted)).toEqual([1197, 1198, 1199]);
    expect(left(streams.deleted)).toEqual([1199]);
    expect(left(streams.revived)).toEqual([1200, 1201]);
    expect(left(streams.dead)).toEqual([Number(9223372036854775807n)]);
    expect(left(streams.plain)).toHaveLength(1200);
    const positions = new Map(before.map((e) => [e.event?.id, e.event?.position.commit]));
    for (const e of after) expect(e.event?.position.commit).toBe(positions.get(e.event?.id));

    const again = await own.client.appendToStream(streams.deleted, event(), { expectedRevision: 1199n });
    expect(again.nextExpectedRevision).toBe(1200n);
    expect(again.position?.commit).toBeGreaterThan(before.at(-1)?.event?.position.commit ?? 0n);
    expect((await own.node.verify()).faults).toEqual([]);
    expect((await own.node.scavenge()).removedEvents).toBe(2);
  } finally {
    await own.stop();
  }
});

test('the node scavenges by itself, twice an hour', async () => {
  // Its own clock alone: one that runs ahead for all would end the sessions of clients, whose pings are counted.
  const timers = vi.spyOn(globalThis, 'setInterval');
  const own = await startTestNode();
  const halfHourly = timers.mock.calls.filter(([, everyMs]) => everyMs === 30 * 60_000);
  timers.mockRestore();
  try {
    const stream = fresh();
    await own.client.appendToStream(stream, [event(), event(), event()]);
    await own.client.setStreamMetadata(stream, { maxCount: 1 });
    const stored = async () =>
      (await collect(own.client.readAll())).filter((e) => e.event?.streamId === stream).length;
    expect(await stored()).toBe(3);
    expect(halfHourly).toHaveLength(1);
    halfHourly[0]![0]();
    await eventually(async () => (await stored()) === 1, 'what is hidden is gone');
  } finally {
    await own.stop();
  }
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { BACKWARDS, END, type EventStoreDBClient, START } from '@eventstore/db-client';
import { EventStore } from './store/event-store.js';
import { collect, event, startTestNode, temporaryFolder, type TestNode } from './testing/node-fixture.js';

let running: TestNode;
let client: EventStoreDBClient;
beforeAll(async () => {
  running = await startTestNode();
  client = running.client;
});
afterAll(() => running.stop());

const fresh = () => `thing-${randomUUID()}`;
const withEvents = async (count: number) => {
  const stream = fresh();
  const events = Array.from({ length: count }, () => event());
  await client.appendToStream(stream, events, { expectedRevision: 'no_stream' });
  return { stream, events };
};
const revisions = async (stream: string) =>
  (await collect(client.readStream(stream))).map((e) => Number(e.event?.revision));
const gone = { type: 'stream-not-found' };
const dead = { type: 'stream-deleted' };
const wrong = { type: 'wrong-expected-version' };

test('a deleted stream is not found in either direction, and its metadata is lost', async () => {
  const { stream } = await withEvents(3);
  await client.setStreamMetadata(stream, { owner: 'me' });
  await client.deleteStream(stream, { expectedRevision: 2n });
  await expect(collect(client.readStream(stream))).rejects.toMatchObject(gone);
  await expect(
    collect(client.readStream(stream, { direction: BACKWARDS, fromRevision: END })),
  ).rejects.toMatchObject(gone);
  const { metadata } = await client.getStreamMetadata(stream);
  expect(Object.keys(metadata ?? {})).toEqual(['truncateBefore']);
});

test('deleting what never was is a wrong expectation, whatever is expected', async () => {
  for (const expectedRevision of ['any', 'no_stream', 3n] as const) {
    await expect(client.deleteStream(fresh(), { expectedRevision })).rejects.toMatchObject(wrong);
  }
});

test('a delete checks its expectation and says both versions', async () => {
  const { stream } = await withEvents(2);
  await expect(client.deleteStream(stream, { expectedRevision: 0n })).rejects.toMatchObject({
    ...wrong,
    streamName: stream,
    expectedVersion: 0n,
    actualVersion: 1n,
  });
  await expect(client.deleteStream(stream, { expectedRevision: 'no_stream' })).rejects.toMatchObject(wrong);
});

for (const expectedRevision of ['any', 'no_stream', 2n] as const) {
  test(`after a delete an append with ${expectedRevision} goes on behind the old revisions`, async () => {
    const { stream } = await withEvents(3);
    await client.deleteStream(stream);
    const again = await client.appendToStream(stream, [event('New'), event('New')], { expectedRevision });
    expect(again.nextExpectedRevision).toBe(4n);
    expect(await revisions(stream)).toEqual([3, 4]);
    const { metadata } = await client.getStreamMetadata(stream);
    expect(metadata).toMatchObject({ truncateBefore: 3 });
  });
}

test('after a delete, an older revision is wrong and stream_exists finds a deleted stream', async () => {
  const { stream } = await withEvents(3);
  await client.deleteStream(stream);
  await expect(client.appendToStream(stream, event(), { expectedRevision: 1n })).rejects.toMatchObject(wrong);
  await expect(
    client.appendToStream(stream, event(), { expectedRevision: 'stream_exists' }),
  ).rejects.toMatchObject(dead);
});

test('the append of a deleted stream that is repeated is done already', async () => {
  const { stream, events } = await withEvents(2);
  await client.deleteStream(stream);
  const again = await client.appendToStream(stream, events, { expectedRevision: 'no_stream' });
  expect(again.nextExpectedRevision).toBe(1n);
  await expect(collect(client.readStream(stream))).rejects.toMatchObject(gone);
});

test('writing metadata revives a deleted stream empty', async () => {
  const { stream } = await withEvents(3);
  await client.deleteStream(stream);
  await client.setStreamMetadata(stream, { owner: 'again' });
  expect(await revisions(stream)).toEqual([]);
  const { metadata } = await client.getStreamMetadata(stream);
  expect(metadata).toMatchObject({ owner: 'again', truncateBefore: 3 });
  await client.appendToStream(stream, event(), { expectedRevision: 2n });
  expect(await revisions(stream)).toEqual([3]);
});

test('the append that revives a stream and the metadata that shows it are one commit: no read finds it missing in between', async () => {
  const folder = temporaryFolder();
  const store = new EventStore({
    file: join(folder.path, 'events.db'),
    onDamage: (error) => expect.fail(String(error)),
    say: () => undefined,
    now: Date.now,
  });
  const proposed = (type: string) => ({
    id: randomUUID(),
    type,
    json: true,
    data: Buffer.from('{}'),
    customMetadata: Buffer.alloc(0),
  });
  const stream = fresh();
  await store.append(stream, 'any', [proposed('Old')]);
  await store.softDelete(stream, 'any');
  // Whoever waits for the next commit is called before the appender is answered, and sees what any reader sees then.
  const commits: string[][] = [];
  let seen = store.tail.end;
  const watch = (): void => {
    const events = store.tail.after(seen) ?? [];
    seen = store.tail.end;
    commits.push(events.map((one) => `${one.stream} ${one.type}`));
    store.tail.onNext(watch);
  };
  store.tail.onNext(watch);
  await store.append(stream, 'any', [proposed('New')]);
  expect(commits).toEqual([[`${stream} New`, `$$${stream} $metadata`]]);
  expect(store.states.metadata(stream).truncateBefore).toBe(1);
  await store.close();
  folder.remove();
});

test('a tombstone burns the name for ever, and that of its metadata', async () => {
  const { stream } = await withEvents(2);
  await client.tombstoneStream(stream, { expectedRevision: 1n });
  await expect(collect(client.readStream(stream))).rejects.toMatchObject({ ...dead, streamName: stream });
  await expect(client.appendToStream(stream, event())).rejects.toMatchObject({ ...dead, streamName: stream });
  await expect(
    client.appendToStream(stream, event(), { credentials: { username: 'a', password: 'b' } }),
  ).rejects.toMatchObject(dead);
  await expect(client.setStreamMetadata(stream, { owner: 'me' })).rejects.toMatchObject(dead);
  await expect(client.deleteStream(stream)).rejects.toMatchObject(dead);
  await expect(client.tombstoneStream(stream)).rejects.toMatchObject(dead);
});

test('a stream that never was can be tombstoned, and $all shows the event at the greatest revision', async () => {
  const stream = fresh();
  await client.tombstoneStream(stream, { expectedRevision: 'no_stream' });
  await expect(client.appendToStream(stream, event())).rejects.toMatchObject(dead);
  const all = await collect(client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1 }));
  expect(all[0]?.event).toMatchObject({
    streamId: stream,
    type: '$streamDeleted',
    revision: 9223372036854775807n,
  });
});

test('$all goes on showing the events of deleted streams, with the metadata that hides them', async () => {
  const { stream } = await withEvents(2);
  await client.deleteStream(stream);
  const all = await collect(client.readAll({ fromPosition: START }));
  expect(all.filter((e) => e.event?.streamId === stream)).toHaveLength(2);
  expect(all.filter((e) => e.event?.streamId === `$$${stream}`).map((e) => e.event?.type)).toEqual([
    '$metadata',
  ]);
});

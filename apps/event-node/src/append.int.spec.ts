import { afterAll, beforeAll, expect, test } from 'vitest';
import { randomUUID } from 'node:crypto';
import { BACKWARDS, binaryEvent, END, type EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import { MAX_APPEND_BYTES } from './services/append-limits.js';
import { collect, event, startTestNode, type TestNode } from './testing/node-fixture.js';

let running: TestNode;
let client: EventStoreDBClient;
beforeAll(async () => {
  running = await startTestNode();
  client = running.client;
});
afterAll(() => running.stop());

const fresh = () => `thing-${randomUUID()}`;
const revisions = async (stream: string) =>
  (await collect(client.readStream(stream))).map((e) => Number(e.event?.revision));
const credentials = { username: 'admin', password: 'any' };
/** The two wires: one long batch call, and one call per append when credentials travel with it. */
const paths = [
  { path: 'batch', extra: {} },
  { path: 'unary', extra: { credentials } },
];

for (const { path, extra } of paths) {
  test(`${path}: revisions count from 0 without gaps, and the answer names the last one's place`, async () => {
    const stream = fresh();
    const first = await client.appendToStream(stream, [event(), event()], {
      ...extra,
      expectedRevision: 'no_stream',
    });
    expect(first).toMatchObject({ success: true, nextExpectedRevision: 1n });
    await client.appendToStream(stream, event(), { ...extra, expectedRevision: 1n });
    await client.appendToStream(stream, event(), { ...extra, expectedRevision: 'stream_exists' });
    await client.appendToStream(stream, event(), { ...extra, expectedRevision: 'any' });
    const events = await collect(client.readStream(stream));
    expect(events.map((e) => e.event?.revision)).toEqual([0n, 1n, 2n, 3n, 4n]);
    expect(events[1]?.event?.position).toEqual(first.position);
    expect(first.position?.commit).toBe(first.position?.prepare);
  });

  test(`${path}: a wrong expectation is refused with both versions, and nothing is written`, async () => {
    const stream = fresh();
    await client.appendToStream(stream, [event(), event()]);
    const refusal = (expectedRevision: bigint | 'no_stream' | 'stream_exists', of = stream) =>
      expect(client.appendToStream(of, event(), { ...extra, expectedRevision })).rejects;
    await refusal(5n).toMatchObject({
      type: 'wrong-expected-version',
      expectedVersion: 5n,
      actualVersion: 1n,
    });
    await refusal(0n).toMatchObject({ type: 'wrong-expected-version', actualVersion: 1n });
    await refusal('no_stream').toMatchObject({ type: 'wrong-expected-version', actualVersion: 1n });
    await refusal('stream_exists', fresh()).toMatchObject({ type: 'wrong-expected-version' });
    expect(await revisions(stream)).toEqual([0, 1]);
  });

  test(`${path}: an append of more than 1 MiB is refused with the limit, one just below is taken`, async () => {
    const sized = (bytes: number) => binaryEvent({ type: 'Big', data: Buffer.alloc(bytes) });
    const overhead = 2 * 'Big'.length;
    await expect(client.appendToStream(fresh(), sized(MAX_APPEND_BYTES), extra)).rejects.toMatchObject({
      type: 'maximum-append-size-exceeded',
      maxAppendSize: MAX_APPEND_BYTES,
    });
    const stream = fresh();
    await client.appendToStream(stream, sized(MAX_APPEND_BYTES - overhead), extra);
    const [only] = await collect(client.readStream(stream));
    expect((only?.event?.data as unknown as Uint8Array).length).toBe(MAX_APPEND_BYTES - overhead);
  });

  test(`${path}: names that are none and $all are refused`, async () => {
    for (const name of ['$$', '$all', '$$$$inner']) {
      await expect(client.appendToStream(name, event(), extra)).rejects.toMatchObject({ type: 'unknown' });
    }
  });

  test(`${path}: an id that is no UUID is refused`, async () => {
    await expect(client.appendToStream(fresh(), event('T', {}, 'no-uuid'), extra)).rejects.toThrow(/UUID/);
  });
}

test('an append of any that is repeated under the same ids succeeds with the old place and writes nothing', async () => {
  const stream = fresh();
  const batch = [event(), event(), event()];
  const first = await client.appendToStream(stream, batch);
  await client.appendToStream(stream, event());
  expect(await client.appendToStream(stream, batch)).toEqual(first);
  expect(await client.appendToStream(stream, batch, { expectedRevision: 'stream_exists' })).toEqual(first);
  const part = await client.appendToStream(stream, batch.slice(0, 2));
  expect(part.nextExpectedRevision).toBe(1n);
  expect(await revisions(stream)).toEqual([0, 1, 2, 3]);
});

test('of an append of any whose first id is known and a later one not, nothing is written', async () => {
  const stream = fresh();
  const known = event();
  await client.appendToStream(stream, known);
  await expect(client.appendToStream(stream, [known, event()])).rejects.toMatchObject({
    type: 'wrong-expected-version',
    actualVersion: 0n,
  });
  expect(await revisions(stream)).toEqual([0]);
});

test('an append of any whose first id is new is written, whatever follows', async () => {
  const stream = fresh();
  const known = event();
  await client.appendToStream(stream, known);
  await client.appendToStream(stream, [event(), known]);
  expect(await revisions(stream)).toEqual([0, 1, 2]);
});

test('an id is known within its own stream alone', async () => {
  const [one, other] = [fresh(), fresh()];
  const same = event();
  await client.appendToStream(one, same);
  await client.appendToStream(other, same);
  expect(await revisions(other)).toEqual([0]);
});

test('behind the end, an append under an exact revision is compared with the log id by id', async () => {
  const stream = fresh();
  const batch = [event(), event()];
  const first = await client.appendToStream(stream, batch, { expectedRevision: 'no_stream' });
  const second = event();
  const later = await client.appendToStream(stream, second, { expectedRevision: 1n });
  await client.appendToStream(stream, event(), { expectedRevision: 2n });
  expect(await client.appendToStream(stream, batch, { expectedRevision: 'no_stream' })).toEqual(first);
  expect(await client.appendToStream(stream, second, { expectedRevision: 1n })).toEqual(later);
  await expect(
    client.appendToStream(stream, [second, event()], { expectedRevision: 1n }),
  ).rejects.toMatchObject({ type: 'wrong-expected-version', actualVersion: 3n });
  expect(await revisions(stream)).toEqual([0, 1, 2, 3]);
});

test('at the current revision an id is written again even if it was used before', async () => {
  const stream = fresh();
  const same = event();
  await client.appendToStream(stream, same);
  await client.appendToStream(stream, same, { expectedRevision: 0n });
  expect(await revisions(stream)).toEqual([0, 1]);
});

test('an append that was refused takes none of its neighbours in the commit back', async () => {
  const stream = fresh();
  const results = await Promise.allSettled(
    Array.from({ length: 60 }, (_, i) =>
      i % 3 === 0
        ? client.appendToStream(stream, event('Wrong'), { expectedRevision: 5000n })
        : client.appendToStream(stream, event('Right', { i })),
    ),
  );
  expect(results.filter((r) => r.status === 'rejected')).toHaveLength(20);
  const events = await collect(client.readStream(stream));
  expect(events).toHaveLength(40);
  expect(new Set(events.map((e) => e.event?.type))).toEqual(new Set(['Right']));
});

test('what was appended is read back byte for byte, in JSON and in bytes', async () => {
  const stream = fresh();
  const data = { text: 'Grüße 🎈', nested: { list: [1, 2.5, null] } };
  const bytes = Buffer.from([0, 255, 128, 1]);
  await client.appendToStream(stream, [
    jsonEvent({ type: 'Ünïcode', data, metadata: { $correlationId: 'c', by: 'me' } }),
    binaryEvent({ type: 'bytes', data: bytes, metadata: Buffer.from([9, 8]) }),
  ]);
  const [json, binary] = await collect(client.readStream(stream));
  expect(json?.event).toMatchObject({
    type: 'Ünïcode',
    isJson: true,
    data,
    metadata: { $correlationId: 'c', by: 'me' },
    streamId: stream,
  });
  expect(binary?.event?.isJson).toBe(false);
  expect(Buffer.from(binary?.event?.data as unknown as Uint8Array)).toEqual(bytes);
  expect(Buffer.from(binary?.event?.metadata as unknown as Uint8Array)).toEqual(Buffer.from([9, 8]));
});

test('an append in several messages is one append', async () => {
  const stream = fresh();
  const data = { text: 'y'.repeat(2000) };
  await client.appendToStream(
    stream,
    Array.from({ length: 200 }, () => event('Part', data)),
    { batchAppendSize: 10_000, expectedRevision: 'no_stream' },
  );
  expect(await revisions(stream)).toHaveLength(200);
});

test('stream names beyond ASCII are streams like others', async () => {
  const stream = `größe-${randomUUID()}-日本`;
  await client.appendToStream(stream, event());
  await expect(
    client.appendToStream(stream, event(), { expectedRevision: 7n, credentials }),
  ).rejects.toMatchObject({ type: 'wrong-expected-version' });
  const [last] = await collect(client.readStream(stream, { direction: BACKWARDS, fromRevision: END }));
  expect(last?.event?.streamId).toBe(stream);
});

test('a deadline that is over when the append arrives is a typed error, and nothing is written', async () => {
  const stream = fresh();
  await expect(client.appendToStream(stream, event(), { deadline: -5000 })).rejects.toMatchObject({
    type: 'deadline-exceeded',
  });
  await expect(collect(client.readStream(stream))).rejects.toMatchObject({ type: 'stream-not-found' });
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { randomUUID } from 'node:crypto';
import { END, type EventStoreDBClient, type Position, START, streamNameFilter } from '@eventstore/db-client';
import { event, eventually, startTestNode, type TestNode } from './testing/node-fixture.js';

let running: TestNode;
let client: EventStoreDBClient;
beforeAll(async () => {
  running = await startTestNode();
  client = running.client;
});
afterAll(() => running.stop());

const fresh = (category = 'thing') => `${category}-${randomUUID()}`;
const write = (stream: string, count: number) =>
  client.appendToStream(
    stream,
    Array.from({ length: count }, () => event()),
  );

type Subscription = ReturnType<EventStoreDBClient['subscribeToStream']>;
/** Writes down what a subscription says, in its order. */
function watch(subscription: Subscription | ReturnType<EventStoreDBClient['subscribeToAll']>) {
  const said: string[] = [];
  const s = subscription as Subscription;
  s.on('confirmation', () => said.push('confirmed'));
  s.on('data', ({ event: e }) => said.push(`${e?.type === '$streamDeleted' ? 'dead' : e?.revision}`));
  s.on('caughtUp', () => said.push('caught up'));
  s.on('error', (error) => said.push(`error: ${(error as { type?: string }).type ?? String(error)}`));
  const until = (what: string) => eventually(() => said.includes(what), `${what} among ${said.join(', ')}`);
  return { said, until, stop: () => s.unsubscribe() };
}

test('a subscription to a stream tells the past, says that it has caught up, and goes on live', async () => {
  const stream = fresh();
  await write(stream, 3);
  const { said, until, stop } = watch(client.subscribeToStream(stream, { fromRevision: START }));
  await until('caught up');
  await write(stream, 2);
  await until('4');
  expect(said).toEqual(['confirmed', '0', '1', '2', 'caught up', '3', '4']);
  await stop();
});

test('a subscription starts behind the revision it is given, or with what comes', async () => {
  const stream = fresh();
  await write(stream, 3);
  const behind = watch(client.subscribeToStream(stream, { fromRevision: 1n }));
  const live = watch(client.subscribeToStream(stream, { fromRevision: END }));
  await behind.until('caught up');
  await live.until('caught up');
  await write(stream, 1);
  await behind.until('3');
  await live.until('3');
  expect(behind.said).toEqual(['confirmed', '2', 'caught up', '3']);
  expect(live.said).toEqual(['confirmed', 'caught up', '3']);
  await behind.stop();
  await live.stop();
});

test('a subscription to a stream that is not there yet catches up at once and waits', async () => {
  const stream = fresh();
  const { said, until, stop } = watch(client.subscribeToStream(stream, { fromRevision: START }));
  await until('caught up');
  await write(stream, 1);
  await until('0');
  expect(said).toEqual(['confirmed', 'caught up', '0']);
  await stop();
});

test('a subscription to a tombstoned stream ends with the typed error', async () => {
  const stream = fresh();
  await write(stream, 1);
  await client.tombstoneStream(stream);
  const { said, until } = watch(client.subscribeToStream(stream, { fromRevision: START }));
  await until('error: stream-deleted');
  expect(said).toEqual(['error: stream-deleted']);
});

test('a tombstone ends a live subscription after its event', async () => {
  const stream = fresh();
  await write(stream, 1);
  const { said, until } = watch(client.subscribeToStream(stream, { fromRevision: START }));
  await until('caught up');
  await client.tombstoneStream(stream);
  await until('error: stream-deleted');
  expect(said).toEqual(['confirmed', '0', 'caught up', 'dead', 'error: stream-deleted']);
});

test('after a soft delete a live subscription goes on with the new events', async () => {
  const stream = fresh();
  await write(stream, 2);
  const { said, until, stop } = watch(client.subscribeToStream(stream, { fromRevision: START }));
  await until('caught up');
  await client.deleteStream(stream);
  await write(stream, 1);
  await until('2');
  expect(said).toEqual(['confirmed', '0', '1', 'caught up', '2']);
  await stop();
});

test('a subscription to $all starts behind its position and sees every stream in one order', async () => {
  const stream = fresh();
  const { position } = await write(stream, 1);
  const seen: bigint[] = [];
  const subscription = client.subscribeToAll({ fromPosition: position ?? START });
  subscription.on('data', ({ event: e }) => seen.push(e?.position.commit ?? -1n));
  subscription.on('error', () => seen.push(-2n));
  await Promise.all(Array.from({ length: 20 }, () => write(fresh(), 2)));
  await eventually(() => seen.length >= 40, 'all forty events were seen');
  expect(seen[0]).toBeGreaterThan(position?.commit ?? 0n);
  expect([...seen].sort((a, b) => (a < b ? -1 : 1))).toEqual(seen);
  await subscription.unsubscribe();
});

test('a subscription to $all from a position that another log has given is refused', async () => {
  const far = { commit: 10n ** 15n, prepare: 10n ** 15n };
  const subscription = client.subscribeToAll({ fromPosition: far });
  const error = await new Promise<Error>((resolve) => subscription.on('error', resolve));
  expect(error.message).toMatch(/another log/);
});

test('a filtered subscription says how far it has looked: by the window, and once when it catches up', async () => {
  const category = `many${randomUUID().slice(0, 8)}`;
  await write(fresh('noise'), 100);
  await write(fresh(category), 5);
  const checkpoints: bigint[] = [];
  const order: string[] = [];
  const subscription = client.subscribeToAll({
    fromPosition: START,
    filter: streamNameFilter({
      prefixes: [category],
      maxSearchWindow: 10,
      checkpointInterval: 2,
      checkpointReached: (_: unknown, place: Position) => {
        checkpoints.push(place.commit);
        order.push('checkpoint');
        return Promise.resolve();
      },
    }),
  });
  subscription.on('data', () => order.push('event'));
  subscription.on('caughtUp', () => order.push('caught up'));
  subscription.on('error', (error) => order.push(String(error)));
  await eventually(() => order.includes('caught up'), 'the subscription caught up');
  const atCatchUp = checkpoints.length;
  expect(order.filter((what) => what === 'event')).toHaveLength(5);
  expect(atCatchUp).toBeGreaterThanOrEqual(5);
  const { position } = await write(fresh('noise'), 60);
  await eventually(() => checkpoints.length >= atCatchUp + 3, 'live checkpoints follow');
  expect(checkpoints.at(-1)).toBeLessThanOrEqual(position?.commit ?? 0n);
  for (let i = 1; i < checkpoints.length; i++) {
    expect(checkpoints[i]).toBeGreaterThan(checkpoints[i - 1] ?? 0n);
  }
  await subscription.unsubscribe();
});

test('a reader that does not keep up loses nothing', async () => {
  const stream = fresh('slow');
  const subscription = client.subscribeToStream(stream, { fromRevision: START });
  const reading = (async () => {
    const seen: number[] = [];
    for await (const { event: e } of subscription) {
      seen.push(Number(e?.revision));
      // A pause now and then is enough: the writer is far ahead meanwhile.
      if (seen.length % 1500 === 0) await new Promise((resolve) => setTimeout(resolve, 50));
      if (seen.length === 9000) break;
    }
    await subscription.unsubscribe();
    return seen;
  })();
  for (let i = 0; i < 90; i++) {
    await client.appendToStream(
      stream,
      Array.from({ length: 100 }, () => event('Filled', { pad: 'p'.repeat(300) })),
    );
  }
  expect(await reading).toEqual(Array.from({ length: 9000 }, (_, i) => i));
});

test('a subscription sees each event once while many write at its passage from past to live', async () => {
  const category = `race${randomUUID().slice(0, 8)}`;
  let writing = true;
  let written = 0;
  const writers = Array.from({ length: 4 }, async () => {
    while (writing) {
      await write(fresh(category), 3);
      written += 3;
    }
  });
  await eventually(() => written >= 30, 'some events are there');
  const ids: string[] = [];
  const subscription = client.subscribeToAll({
    fromPosition: START,
    filter: streamNameFilter({ prefixes: [category] }),
  });
  subscription.on('data', ({ event: e }) => ids.push(e?.id ?? ''));
  subscription.on('error', (error) => ids.push(String(error)));
  await eventually(() => written >= 300, 'more events are there');
  writing = false;
  await Promise.all(writers);
  await eventually(() => ids.length >= written, 'all events were seen');
  expect(new Set(ids).size).toBe(written);
  expect(ids).toHaveLength(written);
  await subscription.unsubscribe();
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { randomUUID } from 'node:crypto';
import {
  BACKWARDS,
  binaryEvent,
  END,
  type EventStoreDBClient,
  eventTypeFilter,
  START,
  streamNameFilter,
} from '@eventstore/db-client';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import { rawRead } from './testing/raw-client.js';
import { collect, event, startTestNode, type TestNode } from './testing/node-fixture.js';

let running: TestNode;
let client: EventStoreDBClient;
beforeAll(async () => {
  running = await startTestNode();
  client = running.client;
});
afterAll(() => running.stop());

const fresh = () => `thing-${randomUUID()}`;
const write = async (stream: string, count: number) =>
  client.appendToStream(
    stream,
    Array.from({ length: count }, (_, i) => event('Counted', { i })),
  );
const revisionsOf = (events: { event?: { revision: bigint } }[]) =>
  events.map((e) => Number(e.event?.revision));

test('a stream is read inclusively from a revision, in both directions, as far as the count', async () => {
  const stream = fresh();
  await write(stream, 10);
  const read = async (options: Parameters<EventStoreDBClient['readStream']>[1]) =>
    revisionsOf(await collect(client.readStream(stream, options)));
  expect(await read({ fromRevision: 7n })).toEqual([7, 8, 9]);
  expect(await read({ fromRevision: 3n, maxCount: 2 })).toEqual([3, 4]);
  expect(await read({ fromRevision: 10n })).toEqual([]);
  expect(await read({ direction: BACKWARDS, fromRevision: 2n })).toEqual([2, 1, 0]);
  expect(await read({ direction: BACKWARDS, fromRevision: END, maxCount: 3 })).toEqual([9, 8, 7]);
  expect(await read({ direction: BACKWARDS, fromRevision: 500n, maxCount: 1 })).toEqual([9]);
});

test('a stream that never was is not found, and its name is said', async () => {
  const stream = fresh();
  await expect(collect(client.readStream(stream))).rejects.toMatchObject({
    type: 'stream-not-found',
    streamName: stream,
  });
});

test('a long stream is read whole, over many pages of events of very different sizes', async () => {
  const stream = fresh();
  for (let i = 0; i < 30; i++) {
    await client.appendToStream(
      stream,
      Array.from({ length: 20 }, () =>
        binaryEvent({ type: 'Sized', data: Buffer.alloc(i % 5 === 0 ? 30_000 : 50) }),
      ),
    );
  }
  expect(revisionsOf(await collect(client.readStream(stream)))).toEqual(
    Array.from({ length: 600 }, (_, i) => i),
  );
  expect(
    revisionsOf(await collect(client.readStream(stream, { direction: BACKWARDS, fromRevision: END }))),
  ).toEqual(Array.from({ length: 600 }, (_, i) => 599 - i));
});

test('$all is one strict order with equal commit and prepare, the same in both directions', async () => {
  await write(fresh(), 5);
  const forwards = await collect(client.readAll({ fromPosition: START }));
  const places = forwards.map((e) => e.event?.position ?? { commit: -1n, prepare: -2n });
  for (const [i, place] of places.entries()) {
    expect(place.commit).toBe(place.prepare);
    if (i > 0) expect(place.commit).toBeGreaterThan((places[i - 1]?.commit ?? 0n) + 1n);
  }
  const backwards = await collect(client.readAll({ direction: BACKWARDS, fromPosition: END }));
  expect(backwards.map((e) => e.event?.id)).toEqual(forwards.map((e) => e.event?.id).reverse());
});

test('$all is read inclusively forwards and exclusively backwards', async () => {
  const { position } = await write(fresh(), 3);
  const [, middle] = (await collect(client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 2 })))
    .map((e) => e.event)
    .concat();
  const from = middle?.position ?? { commit: 0n, prepare: 0n };
  const forwards = await collect(client.readAll({ fromPosition: from, maxCount: 1 }));
  expect(forwards[0]?.event?.id).toBe(middle?.id);
  const backwards = await collect(client.readAll({ direction: BACKWARDS, fromPosition: from, maxCount: 1 }));
  expect(backwards[0]?.event?.position.commit).toBeLessThan(from.commit);
  expect(position?.commit).toBeGreaterThan(from.commit);
});

test('a new log begins with system events, so that a reader who forgets to filter them is caught', async () => {
  const [first] = await collect(client.readAll({ fromPosition: START, maxCount: 1 }));
  expect(first?.event?.type).toMatch(/^\$/);
});

const options = (change: (options: streamsPb.ReadReq.Options) => void) => {
  const options = new streamsPb.ReadReq.Options();
  const all = new streamsPb.ReadReq.Options.AllOptions();
  all.setStart(new sharedPb.Empty());
  options.setAll(all);
  options.setCount('10');
  options.setNoFilter(new sharedPb.Empty());
  const uuid = new streamsPb.ReadReq.Options.UUIDOption();
  uuid.setString(new sharedPb.Empty());
  options.setUuidOption(uuid);
  change(options);
  return options;
};
const filter = (change: (filter: streamsPb.ReadReq.Options.FilterOptions) => void) => {
  const filter = new streamsPb.ReadReq.Options.FilterOptions();
  filter.setMax(32);
  filter.setCheckpointintervalmultiplier(1);
  change(filter);
  return filter;
};
const regex = (pattern: string) => {
  const expression = new streamsPb.ReadReq.Options.FilterOptions.Expression();
  expression.setRegex(pattern);
  return expression;
};
const subscribe = (o: streamsPb.ReadReq.Options) =>
  o.setSubscription(new streamsPb.ReadReq.Options.SubscriptionOptions());

const refused: [string, (o: streamsPb.ReadReq.Options) => void][] = [
  ['a count of 0', (o) => o.setCount('0')],
  ['no uuid option', (o) => o.clearUuidOption()],
  [
    'a subscription backwards',
    (o) => {
      subscribe(o);
      o.setReadDirection(streamsPb.ReadReq.Options.ReadDirection.BACKWARDS);
    },
  ],
  [
    'a filter on a stream',
    (o) => {
      const stream = new streamsPb.ReadReq.Options.StreamOptions();
      const id = new sharedPb.StreamIdentifier();
      id.setStreamName(Buffer.from('s'));
      stream.setStreamIdentifier(id);
      stream.setStart(new sharedPb.Empty());
      o.setStream(stream);
      o.setFilter(filter((f) => f.setEventType(regex('a'))));
    },
  ],
  ['a filter of no kind', (o) => o.setFilter(filter(() => undefined))],
  [
    'a checkpoint multiplier of 0',
    (o) =>
      o.setFilter(
        filter((f) => {
          f.setEventType(regex('a'));
          f.setCheckpointintervalmultiplier(0);
        }),
      ),
  ],
  [
    'a filter with neither prefix nor expression',
    (o) =>
      o.setFilter(filter((f) => f.setEventType(new streamsPb.ReadReq.Options.FilterOptions.Expression()))),
  ],
  [
    'a search window of 0',
    (o) =>
      o.setFilter(
        filter((f) => {
          f.setEventType(regex('a'));
          f.setMax(0);
        }),
      ),
  ],
  ['neither count nor subscription', (o) => o.clearCount()],
  ['neither stream nor $all', (o) => o.clearAll()],
  ['no place to begin', (o) => o.setAll(new streamsPb.ReadReq.Options.AllOptions())],
  [
    'a stream without a name',
    (o) => {
      const stream = new streamsPb.ReadReq.Options.StreamOptions();
      stream.setStreamIdentifier(new sharedPb.StreamIdentifier());
      stream.setStart(new sharedPb.Empty());
      o.setStream(stream);
    },
  ],
  [
    'a position beyond the log',
    (o) => {
      const all = new streamsPb.ReadReq.Options.AllOptions();
      const position = new streamsPb.ReadReq.Options.Position();
      position.setCommitPosition('1000000000000000');
      position.setPreparePosition('1000000000000000');
      all.setPosition(position);
      o.setAll(all);
    },
  ],
  ['a bad regular expression', (o) => o.setFilter(filter((f) => f.setEventType(regex('(['))))],
];
for (const [what, change] of refused) {
  test(`a read with ${what} is INVALID_ARGUMENT`, async () => {
    await expect(rawRead(running.node.port, options(change))).rejects.toMatchObject({ code: 3 });
  });
}

test('ids come as text or as two numbers, as the reader asks', async () => {
  const id = '80123456-89ab-4cde-8f01-fedcba987654';
  const stream = fresh();
  await client.appendToStream(stream, event('T', {}, id));
  const found = await rawRead(
    running.node.port,
    options((o) => {
      o.getUuidOption()?.setStructured(new sharedPb.Empty());
      o.setFilter(
        filter((f) => {
          f.setStreamIdentifier(regex(`^${stream}$`));
        }),
      );
    }),
  );
  const structured = found[0]?.getEvent()?.getEvent()?.getId()?.getStructured();
  const half = (value: string | undefined) => BigInt.asUintN(64, BigInt(value ?? 0)).toString(16);
  expect(half(structured?.getMostSignificantBits())).toBe('8012345689ab4cde');
  expect(half(structured?.getLeastSignificantBits())).toBe('8f01fedcba987654');
  expect(found[0]?.getEvent()?.getEvent()?.getStreamRevision()).toBe('0');
});

test('filters by prefix and by expression, on stream names and on types, are the server’s work', async () => {
  const tag = randomUUID().slice(0, 8);
  await client.appendToStream(`alpha-${tag}`, [event(`Made${tag}`), event(`Changed${tag}`)]);
  await client.appendToStream(`beta-${tag}`, [event(`Made${tag}`)]);
  const seen = async (f: Parameters<EventStoreDBClient['subscribeToAll']>[0]) => {
    const names: string[] = [];
    const subscription = client.subscribeToAll({ fromPosition: START, ...f });
    await new Promise<void>((resolve, reject) => {
      subscription.on('data', ({ event: e }) => names.push(`${e?.streamId}/${e?.type}`));
      subscription.on('caughtUp', resolve);
      subscription.on('error', reject);
    });
    await subscription.unsubscribe();
    return names;
  };
  const [am, ac, bm] = [`alpha-${tag}/Made${tag}`, `alpha-${tag}/Changed${tag}`, `beta-${tag}/Made${tag}`];
  expect(await seen({ filter: streamNameFilter({ prefixes: [`alpha-${tag}`] }) })).toEqual([am, ac]);
  expect(await seen({ filter: streamNameFilter({ regex: `^(alpha|beta)-${tag}$` }) })).toEqual([am, ac, bm]);
  expect(await seen({ filter: eventTypeFilter({ prefixes: [`Made${tag}`, 'Never'] }) })).toEqual([am, bm]);
  expect(await seen({ filter: eventTypeFilter({ regex: `^[^\\$].*ed${tag}` }) })).toEqual([ac]);
});

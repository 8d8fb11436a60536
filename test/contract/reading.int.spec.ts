import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { randomUUID } from 'node:crypto';
import {
  type AllStreamResolvedEvent,
  BACKWARDS,
  binaryEvent,
  END,
  type EventStoreDBClient,
  type ResolvedEvent,
  START,
  streamNameFilter,
} from '@eventstore/db-client';
import { collect, eventually } from '../../apps/event-node/src/testing/node-fixture.js';
import { contenders, event, fresh, onlyEmbedded, type Running, seen } from './servers.js';

/** What Berth relies on when it reads and subscribes, one test per rule, against each server. */
for (const contender of contenders) {
  describe(contender.name, () => {
    let running: Running;
    let client: EventStoreDBClient;
    beforeAll(async () => {
      running = await contender.start();
      ({ client } = running);
    });
    afterAll(() => running.stop());

    const write = (stream: string, count: number) =>
      client.appendToStream(
        stream,
        Array.from({ length: count }, () => event()),
      );

    test('reads of a stream start inclusively; beyond its end there is nothing forwards, its end backwards', async () => {
      const stream = fresh();
      await write(stream, 3);
      const read = async (direction: 'forwards' | 'backwards', fromRevision: bigint) =>
        (await collect(client.readStream(stream, { direction, fromRevision }))).map((e) => e.event?.revision);
      expect(await read('forwards', 1n)).toEqual([1n, 2n]);
      expect(await read('backwards', 1n)).toEqual([1n, 0n]);
      expect(await read('forwards', 9n)).toEqual([]);
      expect(await read('backwards', 9n)).toEqual([2n, 1n, 0n]);
    });

    test('$all is read inclusively forwards and exclusively backwards', async () => {
      const stream = fresh();
      await write(stream, 1);
      const { position } = await write(stream, 1);
      if (!position) throw new Error('an append has no position');
      const [forwards] = await collect(client.readAll({ fromPosition: position, maxCount: 1 }));
      expect(forwards?.event?.position).toEqual(position);
      const [backwards] = await collect(
        client.readAll({ direction: BACKWARDS, fromPosition: position, maxCount: 1 }),
      );
      expect(backwards?.event?.position.commit).toBeLessThan(position.commit);
    });

    test('$all read backwards from its end gives the newest events, each at one place with room between', async () => {
      const stream = fresh();
      const { position } = await write(stream, 3);
      const newest = (
        await collect(client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 20 }))
      ).flatMap((e) => (e.event ? [e.event] : []));
      for (const { position: place } of newest) expect(place.commit).toBe(place.prepare);
      const own = newest.filter((e) => e.streamId === stream);
      expect(own.map((e) => Number(e.revision))).toEqual([2, 1, 0]);
      expect(own[0]?.position).toEqual(position);
      const places = newest.map((e) => e.position.commit);
      // Sparse: a position and one more is nobody's.
      for (const [i, place] of places.entries()) expect(place).toBeGreaterThan((places[i + 1] ?? -2n) + 1n);
    });

    test('a read from a position beyond the log is an invalid argument', async () => {
      const far = { commit: 10n ** 15n, prepare: 10n ** 15n };
      await expect(collect(client.readAll({ fromPosition: far }))).rejects.toMatchObject({ code: 3 });
    });

    test('a regular expression that is none is an invalid argument', async () => {
      const subscription = client.subscribeToAll({ filter: streamNameFilter({ regex: '([' }) });
      const error = await new Promise((resolve) => subscription.on('error', resolve));
      expect(error).toMatchObject({ code: 3 });
    });

    test('subscriptions start behind their place, catch up once and go on', async () => {
      const stream = fresh();
      await write(stream, 3);
      const heard: (string | number)[] = [];
      const subscription = client.subscribeToStream(stream, { fromRevision: 0n });
      subscription.on('data', ({ event: e }) => heard.push(Number(e?.revision)));
      subscription.on('caughtUp', () => heard.push('caught up'));
      subscription.on('error', (error) => heard.push(String(error)));
      await eventually(() => heard.includes('caught up'), 'the subscription caught up');
      await write(stream, 1);
      await eventually(() => heard.length >= 4, 'the new event came');
      expect(heard).toEqual([1, 2, 'caught up', 3]);
      await subscription.unsubscribe();
    });

    test('a subscription from the start has the first event, one from the end what comes next', async () => {
      const stream = fresh();
      await write(stream, 2);
      const follow = (fromRevision: typeof START | typeof END) => {
        const heard: (number | string)[] = [];
        const subscription = client.subscribeToStream(stream, { fromRevision });
        subscription.on('data', ({ event: e }) => heard.push(Number(e?.revision)));
        subscription.on('caughtUp', () => heard.push('caught up'));
        subscription.on('error', (error) => heard.push(String(error)));
        return { heard, subscription };
      };
      const [first, next] = [follow(START), follow(END)];
      for (const { heard } of [first, next])
        await eventually(() => heard.includes('caught up'), 'the subscription caught up');
      await write(stream, 1);
      await eventually(() => first.heard.includes(2) && next.heard.includes(2), 'the new event came');
      expect(first.heard).toEqual([0, 1, 'caught up', 2]);
      expect(next.heard).toEqual(['caught up', 2]);
      for (const { subscription } of [first, next]) await subscription.unsubscribe();
    });

    test('a subscription to the log follows the named streams alone, in the log’s order, and says how far it is', async () => {
      const category = `only${randomUUID().slice(0, 8)}`;
      const [one, two] = [fresh(category), fresh(category)];
      const { position } = await write(fresh('noise'), 1);
      await write(one, 1);
      await write(fresh('noise'), 40);
      await write(two, 1);
      const heard: string[] = [];
      const checkpoints: bigint[] = [];
      const subscription = client.subscribeToAll({
        fromPosition: position ?? START,
        filter: streamNameFilter({
          prefixes: [`${category}-`],
          maxSearchWindow: 8,
          checkpointInterval: 1,
          checkpointReached: (_: unknown, place: { commit: bigint }) => {
            checkpoints.push(place.commit);
            return Promise.resolve();
          },
        }),
      });
      subscription.on('data', ({ event: e }) => heard.push(e?.streamId ?? ''));
      subscription.on('caughtUp', () => heard.push('caught up'));
      subscription.on('error', (error) => heard.push(String(error)));
      await eventually(() => heard.includes('caught up'), 'the subscription caught up');
      await write(one, 1);
      await eventually(() => heard.length >= 4, 'the new event came');
      expect(heard).toEqual([one, two, 'caught up', one]);
      expect(checkpoints.length).toBeGreaterThan(0);
      expect(checkpoints).toEqual([...new Set(checkpoints)].sort((a, b) => (a < b ? -1 : 1)));
      await subscription.unsubscribe();
    });

    test('filters take the expressions that every server understands', async () => {
      const category = `expr${randomUUID().slice(0, 8)}`;
      for (const name of ['a1', 'a2', 'b1', 'a+b']) await write(`${category}-${name}`, 1);
      const matching = async (regex: string) => {
        const heard: string[] = [];
        let caughtUp = false;
        const subscription = client.subscribeToAll({ filter: streamNameFilter({ regex }) });
        subscription.on('data', ({ event: e }) => heard.push(e?.streamId.slice(category.length + 1) ?? ''));
        subscription.on('caughtUp', () => (caughtUp = true));
        subscription.on('error', (error) => heard.push(String(error)));
        await eventually(() => caughtUp, 'the subscription caught up');
        await subscription.unsubscribe();
        return heard;
      };
      expect(await matching(`^${category}-a[12]$`)).toEqual(['a1', 'a2']);
      expect(await matching(`^${category}-(a1|b.*)$`)).toEqual(['a1', 'b1']);
      expect(await matching(`^${category}-a\\+b?$`)).toEqual(['a+b']);
    });

    describe('of links', () => {
      const links = fresh('links');
      const targets = { there: fresh(), deleted: fresh(), tombstoned: fresh(), truncated: fresh() };
      const link = (data: string) => binaryEvent({ type: '$>', data: Buffer.from(data) });
      const written = [
        `1@${targets.there}`,
        `0@${targets.deleted}`,
        `0@${targets.tombstoned}`,
        `0@${targets.truncated}`,
        `0@${fresh()}`,
        `7@${targets.there}`,
      ];
      let before: { commit: bigint; prepare: bigint };
      beforeAll(async () => {
        for (const target of Object.values(targets)) await write(target, 2);
        await client.deleteStream(targets.deleted);
        await client.tombstoneStream(targets.tombstoned);
        await client.setStreamMetadata(targets.truncated, { truncateBefore: 1 });
        const { position } = await write(fresh('before'), 1);
        if (!position) throw new Error('an append has no position');
        before = position;
        await client.appendToStream(links, written.map(link));
      });

      type Resolved = ResolvedEvent | AllStreamResolvedEvent;
      /** The stream and revision that a reader meets, and the revision of the link that led there. */
      const shown = (read: Resolved) => [
        read.link && Number(read.link.revision),
        read.event && `${Number(read.event.revision)}@${read.event.streamId}`,
      ];
      /** Only the first leads anywhere: whose target is gone has a link and no event. */
      const resolved = written.map((data, i) => [i, i === 0 ? data : undefined]);
      const unresolved = written.map((_, i) => [undefined, `${i}@${links}`]);

      const subscribed = async (
        subscription: ReturnType<typeof client.subscribeToStream> | ReturnType<typeof client.subscribeToAll>,
      ) => {
        const heard: Resolved[] = [];
        const s = subscription as ReturnType<typeof client.subscribeToStream>;
        s.on('data', (read) => heard.push(read));
        await new Promise<void>((resolve, reject) => {
          s.on('caughtUp', resolve);
          s.on('error', reject);
        });
        await s.unsubscribe();
        return heard;
      };
      const filter = streamNameFilter({ prefixes: [links] });
      for (const resolveLinkTos of [true, false]) {
        const how = resolveLinkTos ? 'resolved on request' : 'events like others to whoever does not ask';
        const expected = resolveLinkTos ? resolved : unresolved;
        test(`those of a stream are ${how}, forwards and backwards`, async () => {
          const forwards = await collect(client.readStream(links, { resolveLinkTos }));
          expect(forwards.map(shown)).toEqual(expected);
          const options = { resolveLinkTos, direction: BACKWARDS, fromRevision: END } as const;
          const backwards = await collect(client.readStream(links, options));
          expect(backwards.map(shown)).toEqual([...expected].reverse());
        });
        test(`in $all they are ${how}, at the link's own place`, async () => {
          const all = await collect(client.readAll({ fromPosition: before, resolveLinkTos }));
          const own = all.filter((e) => (e.link ?? e.event)?.streamId === links);
          expect(own.map(shown)).toEqual(expected);
          const places = own.map((e) => (e.link ?? e.event)?.position.commit);
          expect(own.map((e) => e.commitPosition)).toEqual(places);
        });
        test(`to a subscription they are ${how}, also to one that filters $all`, async () => {
          const ofStream = await subscribed(client.subscribeToStream(links, { resolveLinkTos }));
          expect(ofStream.map(shown)).toEqual(expected);
          const ofAll = await subscribed(
            client.subscribeToAll({ fromPosition: before, filter, resolveLinkTos }),
          );
          expect(ofAll.map(shown)).toEqual(expected);
        });
      }
    });

    test.runIf(onlyEmbedded(contender, 'system projections, which an operator may have switched on'))(
      'streams of system projections are not found',
      async () => {
        await write(fresh('category'), 1);
        for (const stream of ['$ce-category', '$et-ContractTested', '$streams', '$bc-x']) {
          expect(await seen(client, stream)).toBe('stream-not-found');
        }
      },
    );
  });
}

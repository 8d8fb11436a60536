import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { randomUUID } from 'node:crypto';
import {
  BACKWARDS,
  binaryEvent,
  END,
  type EventStoreDBClient,
  START,
  streamNameFilter,
} from '@eventstore/db-client';
import { collect, eventually } from '../../apps/event-node/src/testing/node-fixture.js';
import { contenders, event, fresh, onlyEmbedded, type Running, seen } from './servers.js';

/** What Berth relies on, one test per rule, against each server: the embedded node must not differ from a real one. */
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
    const conflict = { type: 'wrong-expected-version' };

    test('revisions count from 0 without a gap, and the answer has the last one’s place', async () => {
      const stream = fresh();
      const { nextExpectedRevision, position } = await write(stream, 3);
      await write(stream, 2);
      expect(await seen(client, stream)).toEqual([0, 1, 2, 3, 4]);
      const [, , third] = await collect(client.readStream(stream));
      expect(nextExpectedRevision).toBe(2n);
      expect(third?.event?.position).toEqual(position);
    });

    test('an append is taken at the revision it expects, and at no other', async () => {
      const stream = fresh();
      const at = (expectedRevision: bigint | 'no_stream' | 'stream_exists') =>
        client.appendToStream(stream, event(), { expectedRevision });
      await expect(at('stream_exists')).rejects.toMatchObject(conflict);
      await expect(at(0n)).rejects.toMatchObject(conflict);
      await at('no_stream');
      await expect(at('no_stream')).rejects.toMatchObject({ ...conflict, actualVersion: 0n });
      await at(0n);
      await at('stream_exists');
      expect(await seen(client, stream)).toEqual([0, 1, 2]);
    });

    test('repeated under its ids and its exact revision an append succeeds again and writes nothing', async () => {
      const stream = fresh();
      const batch = [event(), event()];
      const first = await client.appendToStream(stream, batch, { expectedRevision: 'no_stream' });
      await write(stream, 1);
      const again = await client.appendToStream(stream, batch, { expectedRevision: 'no_stream' });
      expect(again.nextExpectedRevision).toBe(first.nextExpectedRevision);
      expect(again.position).toEqual(first.position);
      expect(await seen(client, stream)).toEqual([0, 1, 2]);
    });

    test('behind the end other ids under an exact revision are a conflict', async () => {
      const stream = fresh();
      const [a, b] = [event(), event()];
      await client.appendToStream(stream, [a, b], { expectedRevision: 'no_stream' });
      for (const batch of [[a, event()], [event(), b], [b], [a, b, event()]]) {
        await expect(
          client.appendToStream(stream, batch, { expectedRevision: 'no_stream' }),
        ).rejects.toMatchObject(conflict);
      }
      expect(await seen(client, stream)).toEqual([0, 1]);
    });

    test('at the end an id is written again', async () => {
      const stream = fresh();
      const once = event();
      await client.appendToStream(stream, once, { expectedRevision: 'no_stream' });
      await client.appendToStream(stream, once, { expectedRevision: 0n });
      expect(await seen(client, stream)).toEqual([0, 1]);
    });

    test('with any, a batch whose ids are all known is answered with its old place', async () => {
      const stream = fresh();
      const batch = [event(), event()];
      const first = await client.appendToStream(stream, batch);
      await write(stream, 1);
      const again = await client.appendToStream(stream, batch);
      expect(again.nextExpectedRevision).toBe(first.nextExpectedRevision);
      await expect(client.appendToStream(stream, [...batch, event()])).rejects.toMatchObject(conflict);
      await client.appendToStream(stream, [event(), ...batch]);
      expect(await seen(client, stream)).toEqual([0, 1, 2, 3, 4, 5]);
    });

    test('metadata alone makes a stream exist to its writers and not to its readers', async () => {
      const stream = fresh();
      await client.setStreamMetadata(stream, { maxCount: 7 });
      expect(await seen(client, stream)).toBe('stream-not-found');
      await client.appendToStream(stream, event(), { expectedRevision: 'stream_exists' });
      expect(await seen(client, stream)).toEqual([0]);
    });

    test('a deleted stream is not found; whoever expects it to exist is told', async () => {
      const stream = fresh();
      await expect(client.deleteStream(stream)).rejects.toMatchObject(conflict);
      await write(stream, 3);
      await client.setStreamMetadata(stream, { maxCount: 9 });
      await client.deleteStream(stream, { expectedRevision: 2n });
      expect(await seen(client, stream)).toBe('stream-not-found');
      expect((await client.getStreamMetadata(stream)).metadata?.maxCount).toBeUndefined();
      await expect(
        client.appendToStream(stream, event(), { expectedRevision: 'stream_exists' }),
      ).rejects.toMatchObject({ type: 'stream-deleted' });
    });

    for (const expectedRevision of ['any', 'no_stream', 2n] as const) {
      test(`an append with ${expectedRevision} revives a deleted stream behind its old revisions`, async () => {
        const stream = fresh();
        await write(stream, 3);
        await client.deleteStream(stream);
        await client.appendToStream(stream, [event(), event()], { expectedRevision });
        await eventually(
          async () => (await seen(client, stream)) !== 'stream-not-found',
          'the stream is seen again',
        );
        expect(await seen(client, stream)).toEqual([3, 4]);
      });
    }

    test('metadata revives a deleted stream empty', async () => {
      const stream = fresh();
      await write(stream, 3);
      await client.deleteStream(stream);
      await client.setStreamMetadata(stream, { maxCount: 5 });
      await eventually(
        async () => (await seen(client, stream)) !== 'stream-not-found',
        'the stream is seen again',
      );
      expect(await seen(client, stream)).toEqual([]);
    });

    test('a tombstone burns a name for ever, and a name that never was too', async () => {
      const [lived, never] = [fresh(), fresh()];
      await write(lived, 1);
      for (const stream of [lived, never]) {
        await client.tombstoneStream(stream);
        expect(await seen(client, stream)).toBe('stream-deleted');
        await expect(write(stream, 1)).rejects.toMatchObject({ type: 'stream-deleted' });
        await expect(client.setStreamMetadata(stream, { maxCount: 1 })).rejects.toMatchObject({
          type: 'stream-deleted',
        });
      }
    });

    test('$maxCount and $tb hide in both directions, and the stricter one holds', async () => {
      const stream = fresh();
      await write(stream, 6);
      await client.setStreamMetadata(stream, { maxCount: 4, truncateBefore: 1 });
      expect(await seen(client, stream)).toEqual([2, 3, 4, 5]);
      await client.setStreamMetadata(stream, { maxCount: 4, truncateBefore: 5 });
      const back = await collect(client.readStream(stream, { direction: BACKWARDS, fromRevision: END }));
      expect(back.map((e) => e.event?.revision)).toEqual([5n]);
    });

    test('a stream whose events are all hidden is empty and not missing', async () => {
      const stream = fresh();
      await write(stream, 2);
      await client.setStreamMetadata(stream, { truncateBefore: 2 });
      expect(await seen(client, stream)).toEqual([]);
    });

    test('$maxAge hides what is older', async () => {
      const stream = fresh();
      await client.setStreamMetadata(stream, { maxAge: 1 });
      await write(stream, 1);
      await eventually(async () => (await seen(client, stream)).length === 0, 'the event has aged away');
    });

    test('a metadata stream shows its newest event alone', async () => {
      const stream = fresh();
      await client.setStreamMetadata(stream, { maxCount: 1 });
      await client.setStreamMetadata(stream, { maxCount: 2 });
      expect(await seen(client, `$$${stream}`)).toEqual([1]);
    });

    test('$all goes on showing what retention and deletion hide, at the same places', async () => {
      const stream = fresh('hidden');
      const ids = [randomUUID(), randomUUID()];
      const first = await client.appendToStream(stream, event(ids[0]));
      await client.appendToStream(stream, event(ids[1]));
      await client.deleteStream(stream);
      const from = first.position ?? START;
      const shown = await collect(client.readAll({ fromPosition: from }));
      expect(shown.filter((e) => e.event?.streamId === stream).map((e) => e.event?.id)).toEqual(ids);
      expect(shown.some((e) => e.event?.streamId === `$$${stream}`)).toBe(true);
    });

    test.runIf(onlyEmbedded(contender, 'a scavenge'))(
      'a scavenge removes what is hidden but the last event, and moves no place',
      async () => {
        const stream = fresh('scavenged');
        const { position } = await write(stream, 4);
        await client.setStreamMetadata(stream, { maxCount: 2 });
        const places = async () =>
          (await collect(client.readAll()))
            .filter((e) => e.event?.streamId === stream)
            .map((e) => [Number(e.event?.revision), e.event?.position.commit]);
        const before = await places();
        await running.scavenge();
        expect(await places()).toEqual(before.slice(2));
        await client.deleteStream(stream);
        await running.scavenge();
        expect(await places()).toEqual(before.slice(3));
        expect((await write(stream, 1)).nextExpectedRevision).toBe(4n);
        expect(before.at(-1)?.[1]).toBe(position?.commit);
      },
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

    test('links are resolved on request, and one whose target is gone has a link and no event', async () => {
      const [target, links] = [fresh(), fresh()];
      await write(target, 2);
      await client.setStreamMetadata(target, { truncateBefore: 1 });
      const link = (data: string) => binaryEvent({ type: '$>', data: Buffer.from(data) });
      await client.appendToStream(links, [link(`1@${target}`), link(`0@${target}`), link(`0@${fresh()}`)]);
      const resolved = await collect(client.readStream(links, { resolveLinkTos: true }));
      expect(resolved.map((e) => [e.link?.revision, e.event?.streamId, e.event?.revision])).toEqual([
        [0n, target, 1n],
        [1n, undefined, undefined],
        [2n, undefined, undefined],
      ]);
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

    test.runIf(onlyEmbedded(contender, 'the limit of an append, which its configuration sets'))(
      'an append above 1 MiB is refused with the limit',
      async () => {
        const big = binaryEvent({ type: 'Big', data: Buffer.alloc(1024 * 1024) });
        await expect(client.appendToStream(fresh(), big)).rejects.toMatchObject({
          type: 'maximum-append-size-exceeded',
          maxAppendSize: 1024 * 1024,
        });
      },
    );
  });
}

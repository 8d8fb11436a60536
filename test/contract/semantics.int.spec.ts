import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { randomUUID } from 'node:crypto';
import {
  BACKWARDS,
  binaryEvent,
  END,
  type EventStoreDBClient,
  jsonEvent,
  START,
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
    const seenBackwards = async (stream: string) =>
      (await collect(client.readStream(stream, { direction: BACKWARDS, fromRevision: END }))).map((e) =>
        Number(e.event?.revision),
      );

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

    for (const expectedRevision of ['any', 'stream_exists'] as const) {
      test(`with ${expectedRevision}, a batch whose ids are all known is answered with its old place`, async () => {
        const stream = fresh();
        const batch = [event(), event()];
        const first = await client.appendToStream(stream, batch);
        await write(stream, 1);
        const append = (events: ReturnType<typeof event>[]) =>
          client.appendToStream(stream, events, { expectedRevision });
        const again = await append(batch);
        expect(again.nextExpectedRevision).toBe(first.nextExpectedRevision);
        expect(again.position).toEqual(first.position);
        await expect(append([...batch, event()])).rejects.toMatchObject(conflict);
        await append([event(), ...batch]);
        expect(await seen(client, stream)).toEqual([0, 1, 2, 3, 4, 5]);
      });
    }

    test('metadata alone makes a stream exist to its writers and not to its readers', async () => {
      const stream = fresh();
      await client.setStreamMetadata(stream, { maxCount: 7 });
      expect(await seen(client, stream)).toBe('stream-not-found');
      await client.appendToStream(stream, event(), { expectedRevision: 'stream_exists' });
      expect(await seen(client, stream)).toEqual([0]);
    });

    test('a deleted stream is not found; whoever expects it to exist is told', async () => {
      const stream = fresh();
      for (const expectedRevision of ['any', 'no_stream', 3n] as const) {
        await expect(client.deleteStream(stream, { expectedRevision })).rejects.toMatchObject(conflict);
      }
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
        expect((await client.getStreamMetadata(stream)).metadata?.truncateBefore).toBe(3);
      });
    }

    test.runIf(onlyEmbedded(contender, 'the digits of a $tb on the wire'))(
      'a deletion is metadata with the greatest $tb there is, digit by digit',
      async () => {
        const stream = fresh();
        await write(stream, 1);
        await client.deleteStream(stream);
        expect(await running.wireText(`$$${stream}`)).toBe('{"$tb":9223372036854775807}');
      },
    );

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
      expect(await seenBackwards(stream)).toEqual([5, 4, 3, 2]);
      await client.setStreamMetadata(stream, { maxCount: 4, truncateBefore: 5 });
      expect(await seen(client, stream)).toEqual([5]);
      expect(await seenBackwards(stream)).toEqual([5]);
    });

    test('bounds that are no integers are ignored', async () => {
      const stream = fresh();
      await write(stream, 3);
      await client.appendToStream(
        `$$${stream}`,
        jsonEvent({ type: '$metadata', data: { $maxCount: 1.5, $tb: '2', $maxAge: null } }),
      );
      expect(await seen(client, stream)).toEqual([0, 1, 2]);
    });

    for (const truncateBefore of ['9007199254740991', '9007199254740993', '4611686018427387904']) {
      test(`a $tb of ${truncateBefore} empties a stream and does not delete it`, async () => {
        const stream = fresh();
        await write(stream, 2);
        const data = Buffer.from(`{"$tb":${truncateBefore}}`);
        await client.appendToStream(`$$${stream}`, binaryEvent({ type: '$metadata', data }));
        if (contender.embedded) expect(await running.wireText(`$$${stream}`)).toBe(data.toString());
        expect(await seen(client, stream)).toEqual([]);
        await client.appendToStream(stream, event(), { expectedRevision: 1n });
        expect(await seen(client, stream)).toEqual([]);
      });
    }

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
      expect(await seenBackwards(stream)).toEqual([]);
    });

    test('a metadata stream shows its newest event alone', async () => {
      const stream = fresh();
      await client.setStreamMetadata(stream, { maxCount: 1 });
      await client.setStreamMetadata(stream, { maxCount: 2 });
      expect(await seen(client, `$$${stream}`)).toEqual([1]);
    });

    test('metadata has no metadata of its own', async () => {
      await expect(write(`$$$$${fresh()}`, 1)).rejects.toThrow();
    });

    test('$acl is kept and given back as it was set, with what else the metadata says', async () => {
      const stream = fresh();
      const acl = {
        readRoles: ['$all'],
        writeRoles: ['$admins', 'writers'],
        deleteRoles: ['$admins'],
        metaReadRoles: ['$all'],
        metaWriteRoles: ['$admins'],
      };
      await client.setStreamMetadata(stream, { acl, maxCount: 7, owner: 'contract' });
      expect((await client.getStreamMetadata(stream)).metadata).toEqual({
        acl,
        maxCount: 7,
        owner: 'contract',
      });
      const [newest] = await collect(client.readStream(`$$${stream}`));
      expect(newest?.event?.data).toMatchObject({
        $acl: { $r: ['$all'], $w: ['$admins', 'writers'], $d: ['$admins'], $mr: ['$all'], $mw: ['$admins'] },
      });
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
      await client.tombstoneStream(stream);
      const later = await collect(client.readAll({ fromPosition: from }));
      const own = later.flatMap((e) => (e.event?.streamId === stream ? [e.event] : []));
      expect(own.map((e) => e.type)).toEqual(['ContractTested', 'ContractTested', '$streamDeleted']);
      expect(own.at(-1)?.revision).toBe(2n ** 63n - 1n);
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

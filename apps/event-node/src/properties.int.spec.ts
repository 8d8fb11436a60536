import { afterAll, beforeAll, expect, test } from 'vitest';
import { fork, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { START } from '@eventstore/db-client';
import { track, killLeftovers } from './testing/node-process.js';
import { collect, event, startTestNode, type TestNode } from './testing/node-fixture.js';

/** Writers in processes of their own: the client keeps its pending appends in one table per process. */
const contender = fileURLToPath(
  new URL('../../../dist/apps/event-node/src/testing/contender-process.js', import.meta.url),
);

interface Attempt {
  readonly id: string;
  readonly stream: string;
  readonly expected: number;
  readonly won: boolean;
}

let running: TestNode;
let contenders: ChildProcess[] = [];
beforeAll(async () => {
  running = await startTestNode();
  contenders = Array.from({ length: 3 }, () =>
    track(
      fork(contender, [running.node.connectionString], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }),
    ),
  );
});
afterAll(async () => {
  killLeftovers();
  await running.stop();
});

const ask = (child: ChildProcess, order: object): Promise<Attempt[]> =>
  new Promise((resolve) => {
    child.once('message', (attempts) => resolve(attempts as Attempt[]));
    child.send(order);
  });

test('of several clients that append at the same revision exactly one wins, however they interleave', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          streams: fc.integer({ min: 1, max: 3 }),
          rounds: fc.integer({ min: 2, max: 6 }),
          inFlight: fc.integer({ min: 1, max: 8 }),
        }),
        { minLength: 3, maxLength: 3 },
      ),
      async (plans) => {
        const run = randomUUID();
        const results = await Promise.all(contenders.map((child, i) => ask(child, { run, ...plans[i] })));
        const attempts = results.flat();
        const winners = attempts.filter((attempt) => attempt.won);
        const places = winners.map(({ stream, expected }) => `${stream}@${expected}`);
        expect(new Set(places).size).toBe(places.length);
        for (const stream of new Set(attempts.map((attempt) => attempt.stream))) {
          const events = await collect(running.client.readStream(stream));
          const won = new Map(winners.filter((w) => w.stream === stream).map((w) => [w.expected + 1, w.id]));
          expect(events.map((e) => e.event?.id)).toEqual(events.map((_, revision) => won.get(revision)));
          expect(won.size).toBe(events.length);
        }
      },
    ),
    { numRuns: 12 },
  );
});

test('$all is one strict order, in which every stream counts up by one', async () => {
  const all = await collect(running.client.readAll({ fromPosition: START }));
  const next = new Map<string, bigint>();
  let last = -1n;
  for (const { event: e } of all) {
    if (!e) throw new Error('an event is missing');
    const place = e.position.commit;
    expect(place).toBeGreaterThan(last);
    last = place;
    expect(e.revision).toBe(next.get(e.streamId) ?? 0n);
    next.set(e.streamId, e.revision + 1n);
  }
});

test('what a stream holds follows a model of it, whatever is done to it', async () => {
  const operation = fc.oneof(
    fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constant('delete' as const) }),
    fc.record({ kind: fc.constant('max' as const), count: fc.integer({ min: 1, max: 6 }) }),
    fc.record({ kind: fc.constant('truncate' as const), before: fc.integer({ min: 0, max: 12 }) }),
    fc.record({ kind: fc.constant('scavenge' as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 3, maxLength: 14 }), async (operations) => {
      const { client, node } = running;
      const stream = `model-${randomUUID()}`;
      let last = -1;
      let first = 0;
      let most = Infinity;
      let isDeleted = false;
      for (const step of operations) {
        if (step.kind === 'append') {
          const events = Array.from({ length: step.count }, () => event());
          await client.appendToStream(stream, events);
          if (isDeleted) [first, most, isDeleted] = [last + 1, Infinity, false];
          last += step.count;
        } else if (step.kind === 'delete') {
          if (last < 0) continue;
          await client.deleteStream(stream);
          isDeleted = true;
        } else if (step.kind === 'scavenge') await node.scavenge();
        else {
          const old = isDeleted ? last + 1 : 0;
          if (step.kind === 'max') {
            await client.setStreamMetadata(stream, { maxCount: step.count });
            // A scavenge may have removed for good what looser metadata would show again.
            [first, most] = [Math.max(old, 0), step.count];
          } else {
            await client.setStreamMetadata(stream, { truncateBefore: step.before });
            [first, most] = [Math.max(old, step.before), Infinity];
          }
          isDeleted = false;
        }
        const shown = await collect(client.readStream(stream)).then(
          (events) => events.map((e) => Number(e.event?.revision)),
          (error: unknown) => (error as { type?: string }).type,
        );
        if (last < 0 || isDeleted) expect(shown).toBe('stream-not-found');
        else {
          const from = Math.max(first, last - most + 1, 0);
          const expected = Array.from({ length: Math.max(0, last - from + 1) }, (_, i) => from + i);
          const scavenged = operations.slice(0, operations.indexOf(step)).some((o) => o.kind === 'scavenge');
          if (!scavenged) expect(shown).toEqual(expected);
          else expect(expected.join(',').endsWith((shown as number[]).join(','))).toBe(true);
        }
      }
    }),
    { numRuns: 40 },
  );
  expect((await running.node.verify()).faults).toEqual([]);
});

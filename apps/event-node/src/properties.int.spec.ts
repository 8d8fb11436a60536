import { afterAll, beforeAll, expect, test } from 'vitest';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { collect, event, startTestNode, type TestNode } from './testing/node-fixture.js';

let running: TestNode;
beforeAll(async () => {
  running = await startTestNode();
});
afterAll(() => running.stop());

/** Each run is a dozen commits: more than this is no test of every day. */
const RUNS = Math.min(100, Number(process.env['FAST_CHECK_RUNS'] ?? 40));

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
    { numRuns: RUNS },
  );
  expect((await running.node.verify()).faults).toEqual([]);
});

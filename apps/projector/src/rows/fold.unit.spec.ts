import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { MemoryRows } from '../testing/memory-rows.js';
import { drawEvents, recorded } from '../testing/random-log.js';
import { foldBatch } from './fold.js';
import { VIEW_TABLES } from './views.js';

async function folded(
  batches: readonly (readonly Recorded<BerthEvent>[])[],
): Promise<Record<string, unknown>> {
  const store = new MemoryRows();
  for (const batch of batches) await foldBatch(store, batch);
  return Object.fromEntries(
    VIEW_TABLES.map((table) => [
      table,
      store
        .rows(table)
        .map((row) => JSON.stringify(row))
        .sort(),
    ]),
  );
}

/** Cuts a list at the given places. */
function cut<T>(items: readonly T[], at: readonly number[]): T[][] {
  const ends = [...new Set(at.map((place) => place % (items.length + 1))), items.length].sort(
    (a, b) => a - b,
  );
  return ends.map((end, index) => items.slice(index === 0 ? 0 : ends[index - 1], end));
}

describe('folding a batch', () => {
  it('gives the same rows however the log is cut into batches', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.integer({ min: 1, max: 250 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        async (seed, count, places) => {
          const log = recorded(drawEvents(seed, count));
          const single = await folded(log.map((event) => [event]));
          expect(await folded(cut(log, places))).toEqual(single);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('ignores what a retry wrote a second time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.integer({ min: 1, max: 150 }), async (seed, count) => {
        const drawn = drawEvents(seed, count);
        const once = drawn.filter((one, index) => drawn.findIndex((other) => other.id === one.id) === index);
        const withPositions = recorded(once);
        const positions = new Map(withPositions.map((one) => [one.id, one]));
        // The copies come later in the log, under positions of their own; what the first copy said must stand.
        const log = drawn.map((one) => positions.get(one.id)!);
        expect(await folded([log])).toEqual(await folded([withPositions]));
      }),
      { numRuns: 150 },
    );
  });
});

import { expect, it } from 'vitest';
import type { LoadOutcome, SimCall } from '#placement/simulate/model.js';
import { waitsOf } from './waits.js';

it('a call waits for its load to begin, for the load, for a slot, and is served', () => {
  const call = (index: number, atMs: number): SimCall => ({
    index,
    model: 0,
    atMs,
    promptTokens: 1,
    outputTokens: 1,
  });
  const load: LoadOutcome = {
    model: 0,
    box: 0,
    from: 'disk',
    orderedMs: 1000,
    startMs: 3000,
    endMs: 8000,
    fileBytes: 1,
    failed: false,
  };
  const first = { call: call(0, 1000), startMs: 8000, endMs: 12_000 };
  const joins = { call: call(1, 4000), startMs: 12_000, endMs: 14_000 };
  const later = { call: call(2, 13_000), startMs: 14_000, endMs: 15_000 };
  const refused = { call: call(3, 13_000), refused: { code: 'queue_full', atMs: 13_000 } };
  const waits = waitsOf({ calls: [first, joins, later, refused], loads: [load] });
  expect(waits.untilLoadSeconds).toBeCloseTo(2 / 3, 9);
  expect(waits.loadSeconds).toBeCloseTo((5 + 4) / 3, 9);
  expect(waits.slotSeconds).toBeCloseTo((4 + 1) / 3, 9);
  expect(waits.servingSeconds).toBeCloseTo((4 + 2 + 1) / 3, 9);
});

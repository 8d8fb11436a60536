import { expect, test } from 'vitest';
import fc from 'fast-check';
import { BackOff, pause } from './back-off.js';

test('each wait lies between half and all of a doubled bound, up to the most', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1000 }),
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), {
        minLength: 1,
        maxLength: 20,
      }),
      (firstMs, doublings, randoms) => {
        const mostMs = firstMs * 2 ** doublings;
        let at = 0;
        const backOff = new BackOff({ firstMs, mostMs, random: () => randoms[at] ?? 0 });
        for (at = 0; at < randoms.length; at++) {
          const bound = Math.min(firstMs * 2 ** at, mostMs);
          const wait = backOff.next();
          expect(wait).toBeGreaterThanOrEqual(bound / 2);
          expect(wait).toBeLessThanOrEqual(bound);
        }
        backOff.reset();
        at = 0;
        expect(backOff.next()).toBeLessThanOrEqual(firstMs);
      },
    ),
  );
});

test('two that broke at the same moment do not come back at the same moment', () => {
  const waits = [0.1, 0.9].map((random) => new BackOff({ random: () => random }).next());
  expect(waits[0]).not.toBe(waits[1]);
});

test('a pause ends at once when it is called off, before or meanwhile', async () => {
  const stop = new AbortController();
  const pausing = pause(1e9, stop.signal);
  stop.abort();
  await pausing;
  await pause(1e9, stop.signal);
});

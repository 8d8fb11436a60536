import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { MIB } from '#domain/units.js';
import { bufferBytes, coreCounts, curveOf, measureBandwidth } from './measure.js';
import { betterOf } from './schedule.js';

describe('the rate of memory', () => {
  it('is measured with one core and with all, which together are no slower', async () => {
    // A machine that is busy with other tests may leave threads of the lowest priority nothing.
    const measured = await vi.waitFor(() => measureBandwidth(2, 64 * MIB), 100_000);
    expect(measured.oneCoreGBps).toBeGreaterThan(0);
    expect(measured.allGBps).toBeGreaterThanOrEqual(measured.oneCoreGBps);
    expect(measured.byCoresGBps).toEqual([measured.oneCoreGBps, measured.allGBps]);
  }, 120_000);

  it('is measured at a dozen counts of cores at most, and known at every one, never falling', () => {
    expect(coreCounts(4)).toEqual([1, 2, 3, 4]);
    expect(curveOf([1, 2, 4], [10, 8, 20])).toEqual([10, 10, 15, 20]);
    for (let cores = 1; cores <= 512; cores += 1) {
      const counts = coreCounts(cores);
      expect(counts).toHaveLength(Math.min(cores, 12));
      expect([...new Set(counts)].sort((a, b) => a - b)).toEqual(counts);
      expect([counts[0], counts.at(-1)]).toEqual([1, cores]);
      const curve = curveOf(counts, counts.map(Math.sqrt));
      expect(curve).toHaveLength(cores);
      expect([...curve].sort((a, b) => a - b)).toEqual(curve);
    }
  });

  it('at each count is the best that was measured', () => {
    const best = { oneCoreGBps: 10, allGBps: 20, byCoresGBps: [10, 18, 20] };
    expect(betterOf(best, { oneCoreGBps: 9, allGBps: 20, byCoresGBps: [9, 19, 20] })).toEqual({
      oneCoreGBps: 10,
      allGBps: 20,
      byCoresGBps: [10, 19, 20],
    });
    expect(betterOf(best, best)).toBeUndefined();
    expect(betterOf({ oneCoreGBps: 10, allGBps: 20 }, best)?.byCoresGBps).toEqual([10, 18, 20]);
  });

  it('reads eight times the last cache, and never more than a quarter of what is free', () => {
    expect(bufferBytes(32 * MIB, 4096 * MIB)).toBe(256 * MIB);
    expect(bufferBytes(32 * MIB, 1000 * MIB)).toBeUndefined();
    fc.assert(
      fc.property(fc.option(fc.nat(1024 * MIB), { nil: undefined }), fc.nat(2 ** 40), (cache, free) => {
        const bytes = bufferBytes(cache, free);
        if (bytes === undefined) return;
        expect(bytes).toBeLessThanOrEqual(free / 4);
        expect(bytes).toBeGreaterThanOrEqual(8 * (cache ?? 0));
      }),
    );
  });

  it('is told only when it is better, and never falls', () => {
    const rate = fc.record({
      allGBps: fc.float({ min: 1, max: 1000, noNaN: true }),
      oneCoreGBps: fc.float({ min: 1, max: 1000, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(rate, { minLength: 1 }), (measured) => {
        let best: (typeof measured)[number] | undefined;
        for (const now of measured) {
          const better = betterOf(best, now);
          if (best !== undefined && better !== undefined) {
            expect(better.allGBps >= best.allGBps && better.oneCoreGBps >= best.oneCoreGBps).toBe(true);
            expect(better).not.toEqual(best);
          }
          best = better ?? best;
        }
        expect(betterOf(best, best ?? { allGBps: 0, oneCoreGBps: 0 })).toBeUndefined();
      }),
    );
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MIB } from '#domain/units.js';
import { bufferBytes, measureBandwidth } from './measure.js';
import { betterOf } from './schedule.js';

describe('the rate of memory', () => {
  it('is measured with one core and with all, which together are no slower', async () => {
    const measured = await measureBandwidth(2, 64 * MIB);
    expect(measured.oneCoreGBps).toBeGreaterThan(0);
    expect(measured.allGBps).toBeGreaterThanOrEqual(measured.oneCoreGBps);
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

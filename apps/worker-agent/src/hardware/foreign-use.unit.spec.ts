import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MIB } from '#domain/units.js';
import { FOREIGN_STEP_BYTES, stepForeignUse } from './foreign-use.js';

describe('the step that foreign use is charged at', () => {
  it('is the upper edge of the 128 MiB step that the first reading lies in', () => {
    expect(stepForeignUse(undefined, 1)).toBe(128 * MIB);
    expect(stepForeignUse(undefined, 128 * MIB)).toBe(128 * MIB);
    expect(stepForeignUse(undefined, 129 * MIB)).toBe(256 * MIB);
    expect(stepForeignUse(undefined, 0)).toBe(0);
  });

  it('moves up at once and down only past a whole step', () => {
    expect(stepForeignUse(256 * MIB, 257 * MIB)).toBe(384 * MIB);
    expect(stepForeignUse(384 * MIB, 255 * MIB)).toBe(384 * MIB);
    expect(stepForeignUse(384 * MIB, 128 * MIB)).toBe(384 * MIB);
    expect(stepForeignUse(384 * MIB, 127 * MIB)).toBe(128 * MIB);
  });

  it('never charges less than is used, nor more than two steps above it', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 64 * 1024 * MIB }), { minLength: 1 }), (readings) => {
        let charged: number | undefined;
        for (const bytes of readings) {
          charged = stepForeignUse(charged, bytes);
          expect(charged).toBeGreaterThanOrEqual(bytes);
          expect(charged - bytes).toBeLessThanOrEqual(2 * FOREIGN_STEP_BYTES);
        }
      }),
    );
  });

  it('does not move while a reading wobbles around an edge', () => {
    let charged = stepForeignUse(undefined, 1000 * MIB);
    const first = charged;
    for (let i = 0; i < 50; i++) {
      charged = stepForeignUse(charged, (i % 2 ? 1020 : 900) * MIB);
      expect(charged).toBe(first);
    }
  });
});

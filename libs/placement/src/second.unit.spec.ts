import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isWorthSecond, longestSlotWait } from './second.js';

describe('a second resident for calls that wait for a slot', () => {
  it('the last of the waiting calls has a slot when those before it had theirs', () => {
    const slots = { endInSeconds: [3, 8], outputSeconds: 10 };
    expect(longestSlotWait({ ...slots, waiting: 1 })).toBe(3);
    expect(longestSlotWait({ ...slots, waiting: 2 })).toBe(8);
    expect(longestSlotWait({ ...slots, waiting: 3 })).toBe(13);
    expect(longestSlotWait({ ...slots, waiting: 4 })).toBe(18);
    expect(longestSlotWait({ endInSeconds: [], outputSeconds: 10, waiting: 4 })).toBe(0);
  });

  it('no call waits less than one before it, and more slots never lengthen a wait', () => {
    const seconds = fc.double({ min: 0, max: 100, noNaN: true });
    const slots = fc.array(seconds, { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(slots, seconds, fc.integer({ min: 1, max: 40 }), (endInSeconds, outputSeconds, waiting) => {
        const wait = longestSlotWait({ endInSeconds, outputSeconds, waiting });
        expect(longestSlotWait({ endInSeconds, outputSeconds, waiting: waiting + 1 })).toBeGreaterThanOrEqual(
          wait,
        );
        const more = { endInSeconds: [...endInSeconds, 0], outputSeconds, waiting };
        expect(longestSlotWait(more)).toBeLessThanOrEqual(wait);
      }),
    );
  });

  it('is loaded when the wait is longer than what it displaces with a fifth of its load, never beside a load for which somebody goes', () => {
    const offer = {
      name: 'b',
      readySeconds: 10,
      outputSeconds: 4,
      lossSeconds: 1.5,
      displaced: 1,
      loading: false,
    };
    expect(isWorthSecond(offer, 3.4)).toBe(false);
    expect(isWorthSecond(offer, 3.6)).toBe(true);
    expect(isWorthSecond({ ...offer, loading: true }, 60)).toBe(false);
    expect(isWorthSecond({ ...offer, loading: true, displaced: 0, lossSeconds: 0 }, 3)).toBe(true);
  });
});

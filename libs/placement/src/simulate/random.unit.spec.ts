import { describe, expect, it } from 'vitest';
import { Random } from './random.js';

const draw = (seed: number, of: (random: Random) => number): readonly number[] => {
  const random = new Random(seed);
  return Array.from({ length: 20_000 }, () => of(random));
};
const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
const variation = (values: readonly number[]): number => {
  const m = mean(values);
  return Math.sqrt(mean(values.map((v) => (v - m) ** 2))) / m;
};

describe('the seeded generator', () => {
  it('draws the same numbers for the same seed and others for a fork', () => {
    expect(new Random(9).next()).toBe(new Random(9).next());
    expect(new Random(9).fork('a').next()).not.toBe(new Random(9).fork('b').next());
  });

  it.each([0.3, 1, 4])('draws gamma gaps of shape %d with mean 1 and their burstiness', (shape) => {
    const values = draw(1, (r) => r.gamma(shape));
    expect(mean(values)).toBeCloseTo(1, 1);
    expect(variation(values)).toBeCloseTo(1 / Math.sqrt(shape), 0);
  });

  it.each([0.7, 1, 2])('draws Weibull gaps of shape %d with mean 1', (shape) => {
    expect(mean(draw(2, (r) => r.weibull(shape)))).toBeCloseTo(1, 1);
  });

  it('shuffles without losing anything', () => {
    expect(new Random(3).shuffled([1, 2, 3, 4, 5]).sort()).toEqual([1, 2, 3, 4, 5]);
  });
});

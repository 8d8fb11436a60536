import { expect, it } from 'vitest';
import { backOffSeconds } from './failures.js';

it('a plan that failed is left alone for 30 s, twice as long with each failure, and for ten minutes at most', () => {
  expect([1, 2, 3, 4, 5, 6, 7, 2000].map(backOffSeconds)).toEqual([30, 60, 120, 240, 480, 600, 600, 600]);
});

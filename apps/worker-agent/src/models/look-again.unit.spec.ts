import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LookAgain } from './look-again.js';

let looks: number[];
let again: LookAgain;
let startedMs: number;
beforeEach(() => {
  vi.useFakeTimers();
  looks = [];
  startedMs = performance.now();
  again = new LookAgain(() => looks.push(performance.now() - startedMs));
});
afterEach(() => {
  again.stop();
  vi.useRealTimers();
});

it('a change is looked at once, when no more follow', async () => {
  for (const afterMs of [0, 100, 100]) {
    await vi.advanceTimersByTimeAsync(afterMs);
    again.changed();
  }
  await vi.advanceTimersByTimeAsync(10_000);
  expect(looks).toEqual([500]);
});

it('a folder that changes all the time is looked at all the same, a second after its first change at the latest', async () => {
  for (let i = 0; i < 50; i += 1) {
    again.changed();
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(looks.length).toBeGreaterThanOrEqual(4);
  const gaps = looks.map((at, i) => at - (looks[i - 1] ?? 0));
  expect(Math.max(...gaps)).toBeLessThanOrEqual(1100);
});

it('what no watch tells is found within ten minutes, and nothing after the end', async () => {
  await vi.advanceTimersByTimeAsync(599_999);
  expect(looks).toEqual([]);
  await vi.advanceTimersByTimeAsync(600_001);
  expect(looks).toEqual([600_000, 1_200_000]);
  again.changed();
  again.stop();
  await vi.advanceTimersByTimeAsync(1_200_000);
  expect(looks).toHaveLength(2);
});

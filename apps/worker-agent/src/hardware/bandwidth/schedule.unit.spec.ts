import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { GIB, MIB } from '#domain/units.js';
import type { MemoryBandwidth } from '#domain/events/worker-events.js';
import { scheduleBandwidth } from './schedule.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const rates = (allGBps: number): MemoryBandwidth => ({ allGBps, oneCoreGBps: allGBps / 2 });

function scheduled(random: number, measured: readonly number[], availableBytes = 8 * GIB) {
  const left = [...measured];
  const asked: { readonly cores: number; readonly bytes: number; readonly atSeconds: number }[] = [];
  const better: number[] = [];
  const startedMs = Date.now();
  let best: MemoryBandwidth | undefined;
  const schedule = scheduleBandwidth({
    cores: () => 4,
    lastCacheBytes: () => 32 * MIB,
    availableBytes: () => availableBytes,
    best: () => best,
    onBetter: (now) => {
      best = now;
      better.push(now.allGBps);
      return Promise.resolve();
    },
    log: { warn: () => undefined, info: () => undefined },
    random: () => random,
    measure: (cores, bytes) => {
      asked.push({ cores, bytes, atSeconds: (Date.now() - startedMs) / 1000 });
      return Promise.resolve(rates(left.shift() ?? 0));
    },
  });
  return { schedule, asked, better };
}

it.each([
  [0, 10],
  [0.5, 65],
  [1, 120],
])(
  'memory is measured first 10 to 120 s after the start (%d: after %d s), then hourly',
  async (random, first) => {
    const { schedule, asked } = scheduled(random, [20, 20, 20]);
    await vi.advanceTimersByTimeAsync((first + 2 * 3600) * 1000);
    expect(asked.map(({ atSeconds }) => atSeconds)).toEqual([first, first + 3600, first + 7200]);
    expect(asked[0]).toMatchObject({ cores: 4, bytes: 256 * MIB });
    await schedule.stop();
    await vi.advanceTimersByTimeAsync(7_200_000);
    expect(asked).toHaveLength(3);
  },
);

it('the best of all measurements is kept: what is slower, or better by noise alone, is not told', async () => {
  const { schedule, better } = scheduled(0, [20, 15, 20.3, 24, 10]);
  await vi.advanceTimersByTimeAsync(5 * 3_600_000);
  expect(better).toEqual([20, 24]);
  await schedule.stop();
});

it('nothing is measured while a buffer of eight caches is more than a quarter of what is free', async () => {
  const { schedule, asked } = scheduled(0, [20], 1000 * MIB);
  await vi.advanceTimersByTimeAsync(3 * 3_600_000);
  expect(asked).toEqual([]);
  await schedule.stop();
});

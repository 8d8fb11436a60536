import { expect, it, vi } from 'vitest';
import { GIB, MIB } from '#domain/units.js';
import { type SystemInformation, watchElsewhere } from './elsewhere.js';
import { readMemory } from './memory.js';

/** As `systeminformation` describes a Mac with hyperthreads. */
const mac = (available: () => number): SystemInformation => ({
  cpu: () => Promise.resolve({ cores: 8, physicalCores: 4, cache: { l2: 256 * 1024, l3: 8 * MIB } }),
  mem: () => Promise.resolve({ total: 16 * GIB, available: available(), swaptotal: 2 * GIB, swapused: GIB }),
});
const noFiles = () => undefined;

it('without /proc, memory is what the system can give, not what is free this moment, and is read again', async () => {
  let available = 9 * GIB;
  const watch = await watchElsewhere('darwin', () => Promise.resolve(mac(() => available)), 5);
  try {
    expect(readMemory(noFiles)).toEqual({
      totalBytes: 16 * GIB,
      usedBytes: 7 * GIB,
      availableBytes: 9 * GIB,
      swapBytes: 2 * GIB,
      swapUsedBytes: GIB,
    });
    available = 3 * GIB;
    await vi.waitFor(() => expect(readMemory(noFiles).availableBytes).toBe(3 * GIB));
    // A reading that says nothing does not make the memory go away.
    available = NaN;
    expect(readMemory(noFiles).totalBytes).toBe(16 * GIB);
  } finally {
    watch.stop();
  }
});

it('without /proc, threads of one core are siblings, and the cache is the last one that is told', async () => {
  const watch = await watchElsewhere('darwin', () => Promise.resolve(mac(() => GIB)));
  watch.stop();
  expect(watch.cpu).toMatchObject({ physicalCores: 4, lastCacheBytes: 8 * MIB });
  expect(watch.cpu?.topology.map(({ core }) => core)).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
});

it('is not even loaded on Linux', async () => {
  const load = vi.fn(() => Promise.resolve(mac(() => GIB)));
  expect(await watchElsewhere('linux', load)).not.toHaveProperty('cpu');
  expect(load).not.toHaveBeenCalled();
});

it('knows this machine through the package itself', async () => {
  const watch = await watchElsewhere('darwin');
  try {
    const { totalBytes, availableBytes } = readMemory(noFiles);
    expect(totalBytes).toBeGreaterThan(0);
    expect(availableBytes).toBeLessThanOrEqual(totalBytes);
  } finally {
    watch.stop();
  }
});

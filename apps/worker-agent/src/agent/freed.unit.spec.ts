import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { deviceId, RAM } from '#domain/ids.js';
import { MIB } from '#domain/units.js';
import type { Resident } from '#domain/worker/state.js';
import { FreedMemory, type MemorySource, type SaidSince } from './freed.js';

const GPU = deviceId('GPU-1');
const ENGINE = 2 ** 30;
const measured = (bytes: number) => ({
  deviceId: GPU,
  weightsBytes: bytes,
  kvBytes: 0,
  computeBytes: 0,
  processBytes: 0,
});
const resident = (bytes = 900 * MIB): Resident =>
  ({
    residentId: 'r',
    measured: { byDevice: [{ ...measured(7), deviceId: RAM }, measured(bytes)] },
  }) as never;

/** A driver that says one thing until the memory is free, and another from then on. */
class Driver implements MemorySource {
  freeAtMs = Infinity;
  constructor(
    private readonly held: SaidSince,
    private readonly free: SaidSince,
    private readonly bytes?: number,
  ) {}
  familyOf = () => [ENGINE, ENGINE + 1];
  heldBy = () =>
    this.held.pids === undefined ? [] : [{ deviceId: GPU, ...(this.bytes ? { bytes: this.bytes } : {}) }];
  usedBytes = () => this.held.usedBytes;
  since = () => (performance.now() >= this.freeAtMs ? this.free : this.held);
}

describe('memory of an engine that is gone', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
  afterEach(() => void vi.useRealTimers());

  async function around(driver: Driver, freeAfterMs: number, of = resident()) {
    const warned: string[] = [];
    const freed = new FreedMemory({ warn: (_: unknown, said: string) => warned.push(said) } as never);
    freed.attach(driver);
    let goneMs = 0;
    const done = freed.around(of, ENGINE, () => {
      expect(freed.isLeaving(ENGINE + 1)).toBe(true);
      goneMs = performance.now();
      driver.freeAtMs = goneMs + freeAfterMs;
      return Promise.resolve();
    });
    let tookMs = -1;
    void done.then(() => (tookMs = performance.now() - goneMs));
    await vi.advanceTimersByTimeAsync(15_000);
    expect(freed.isLeaving(ENGINE)).toBe(false);
    return { freed: await done, tookMs, warned };
  }

  it('is waited for until the driver lists nobody of it, and told as the driver counted it', async () => {
    const driver = new Driver(
      { usedBytes: 1500 * MIB, pids: new Set([ENGINE + 1, 5]) },
      { usedBytes: 500 * MIB, pids: new Set([5]) },
      1000 * MIB,
    );
    const { freed, tookMs } = await around(driver, 3000);
    expect(freed).toEqual([
      { deviceId: RAM, bytes: 7 },
      { deviceId: GPU, bytes: 1000 * MIB },
    ]);
    expect(tookMs).toBeGreaterThanOrEqual(3000);
    expect(tookMs).toBeLessThan(5000);
  });

  it('is waited for by the device as a whole where the driver lists no processes', async () => {
    const driver = new Driver({ usedBytes: 1500 * MIB }, { usedBytes: 590 * MIB });
    const { freed, tookMs } = await around(driver, 2000);
    expect(freed[1]).toEqual({ deviceId: GPU, bytes: 910 * MIB });
    expect(tookMs).toBeGreaterThanOrEqual(2000);
  });

  it('is not waited for without end, and what was not seen to be free is not said to be', async () => {
    const driver = new Driver({ usedBytes: 1500 * MIB }, { usedBytes: 1200 * MIB });
    const { freed, tookMs, warned } = await around(driver, 500);
    expect(freed[1]).toEqual({ deviceId: GPU, bytes: 300 * MIB });
    expect(tookMs).toBeGreaterThanOrEqual(10_000);
    expect(warned.join()).toMatch(/of 900.* MiB 300.* MiB were seen to be free/);
  });

  it('of a process beside its buffers is what its driver says it holds, where it says so', async () => {
    const freed = new FreedMemory({ warn: () => undefined });
    const buffers = [{ ...measured(7), deviceId: RAM }, measured(900 * MIB)];
    expect(await freed.withProcess(buffers, ENGINE)).toEqual(buffers);
    freed.attach(new Driver({ pids: new Set([ENGINE]) }, {}, 1400 * MIB));
    expect(await freed.withProcess(buffers, ENGINE)).toEqual([
      buffers[0],
      { ...buffers[1], processBytes: 500 * MIB },
    ]);
    freed.attach(new Driver({ pids: new Set([ENGINE]) }, {}));
    expect(await freed.withProcess(buffers, ENGINE)).toEqual(buffers);
  });

  it('is unknown with a driver that hangs: nothing is said to be free', async () => {
    const { freed } = await around(new Driver({}, {}), 0);
    expect(freed[1]).toEqual({ deviceId: GPU, bytes: 0 });
  });
});

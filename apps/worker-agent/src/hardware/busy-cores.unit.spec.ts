import { describe, expect, it } from 'vitest';
import { BusyCores, type OurWork, readTicksByCpu } from './busy-cores.js';

/** Readings a second apart of 100 ticks each: what every processor worked of them. */
function afterSeconds(
  busy: BusyCores,
  seconds: number,
  worked: readonly number[],
  ours: readonly OurWork[] = [],
) {
  let said: readonly number[] | undefined;
  for (let second = 0; second < seconds; second++) {
    clock += 1;
    worked.forEach((ticks, cpu) => (sums[cpu] = (sums[cpu] ?? 0) + ticks));
    said = busy.read(new Map(sums.map((sum, cpu) => [cpu, { busy: sum, total: clock * 100 }])), ours);
  }
  return said;
}
let clock = 0;
const sums: number[] = [0, 0, 0];
const begun = (): BusyCores => {
  const busy = new BusyCores();
  busy.read(new Map(sums.map((sum, cpu) => [cpu, { busy: sum, total: clock * 100 }])), []);
  return busy;
};

describe('cores on which other programs work', () => {
  it('are told by over half of the last five seconds', () => {
    const busy = begun();
    expect(afterSeconds(busy, 4, [100, 40, 0])).toBeUndefined();
    expect(afterSeconds(busy, 1, [100, 40, 0])).toEqual([0]);
    expect(afterSeconds(busy, 1, [0, 100, 0])).toEqual([0, 1]);
  });

  it('do not come and go with what wobbles around a half', () => {
    const busy = begun();
    expect(afterSeconds(busy, 5, [60, 45, 0])).toEqual([0]);
    expect(afterSeconds(busy, 5, [45, 49, 0])).toEqual([0]);
    expect(afterSeconds(busy, 5, [30, 49, 0])).toEqual([]);
  });

  it('are not those on which our engines work, wherever these are bound', () => {
    const bound = begun();
    expect(afterSeconds(bound, 5, [100, 100, 0], [{ ticks: 100, cpus: [1] }])).toEqual([0]);
    const loose = begun();
    expect(afterSeconds(loose, 5, [90, 90, 90], [{ ticks: 240 }])).toEqual([]);
  });

  it('are read by processor, waiting for a disk not counted', () => {
    const stat = 'cpu  9 0 0 9 0 0 0 0 0 0\ncpu0 10 5 5 70 10 0 0 0 3 0\ncpu1 1 0 0 99 0 0 0 0 0 0\nintr 5\n';
    expect([...readTicksByCpu(() => stat)]).toEqual([
      [0, { busy: 20, total: 100 }],
      [1, { busy: 1, total: 100 }],
    ]);
    expect(readTicksByCpu(() => undefined).size).toBe(0);
  });
});

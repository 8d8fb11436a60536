import { describe, expect, it } from 'vitest';
import { MIB } from '#domain/units.js';
import { claimCores, coresOf, worthwhileCores } from './cores.js';
import { ramBytesPerSecond, secondsPerToken } from './speed.js';
import {
  attention,
  contract,
  decidedOf,
  geometry,
  input,
  resident,
  residents,
  ticket,
  worker,
} from './testing/factories.js';
import { decide } from './decide.js';
import { bytesPerToken } from './weights.js';

describe('cores', () => {
  const none = {};
  it('with nothing in RAM are a quarter of the machine', () => {
    const big = worker({ physicalCores: 16 });
    expect(claimCores(big, { usable: 15, free: 15 }, false, none)).toMatchObject({ threads: 4 });
  });
  it('with a curve are the smallest count beyond which it gains less than 3 %', () => {
    expect(worthwhileCores([10, 19, 27, 27.5, 27.6])).toBe(3);
    const big = worker({ physicalCores: 16 });
    expect(claimCores(big, { usable: 15, free: 15 }, true, none, [10, 19, 27, 27.5])).toMatchObject({
      threads: 3,
    });
    expect(
      claimCores(big, { usable: 15, free: 15 }, true, { cpuPriority: 2 }, [10, 19, 27, 27.5]),
    ).toMatchObject({ threads: 5 });
  });
  it('must reach half of the curve, or the floor that is set', () => {
    const big = worker({ physicalCores: 16 });
    expect(claimCores(big, { usable: 15, free: 1 }, true, none, [10, 19, 27, 27.5])).toMatchObject({
      ok: false,
    });
    expect(claimCores(big, { usable: 15, free: 3 }, true, { cpuFloorCores: 4 })).toMatchObject({ ok: false });
  });
  it('are pinned by a list or a count, also when they are busy', () => {
    expect(claimCores(worker(), { usable: 3, free: 0 }, true, { cpuCores: [2, 3] })).toMatchObject({
      threads: 2,
      cores: [2, 3],
    });
    expect(claimCores(worker(), { usable: 3, free: 0 }, true, { cpuCores: 2 })).toMatchObject({ threads: 2 });
  });
  it('are physical, less one for the system on machines with 3 or more', () => {
    const usable = (physicalCores: number) => coresOf(worker({ physicalCores }), new Map()).usable;
    expect([1, 2, 3, 4, 16].map(usable)).toEqual([1, 2, 2, 3, 15]);
  });
  it('are held by what loads or serves with weights in RAM; an idle resident holds none, one on a card neither', () => {
    const four = contract({ threads: 4 });
    const idle = resident('a', { contract: four });
    const loading = resident('b', { contract: four, phase: 'loading' });
    const onCard = resident('c', { contract: { ...four, gpuLayers: 5 }, phase: 'loading' });
    const state = worker({ physicalCores: 16, residents: residents(idle, loading, onCard) });
    expect(coresOf(state, new Map()).free).toBe(11);
    expect(coresOf(state, new Map([[idle.residentId, { callsInFlight: 1 }]])).free).toBe(7);
  });
  it('without a curve are every free one for weights in RAM, one thread where there are only two', () => {
    expect(claimCores(worker({ physicalCores: 16 }), { usable: 15, free: 9 }, true, none)).toMatchObject({
      threads: 9,
    });
    expect(claimCores(worker({ physicalCores: 2 }), { usable: 2, free: 2 }, true, none)).toMatchObject({
      threads: 1,
    });
  });
  it('of which none is free refuse weights in RAM with both figures', () => {
    expect(claimCores(worker({ physicalCores: 4 }), { usable: 3, free: 0 }, true, none)).toEqual({
      ok: false,
      reason: '0 of 3 cores are free, and weights in RAM need 1; the others load or serve',
    });
  });
});

describe('cores by number', () => {
  /** Eight physical cores of two processors each; core n has n and n + 8. */
  const cpuTopology = Array.from({ length: 16 }, (_, cpu) => ({ cpu, core: cpu % 8, node: 0 }));
  const onCores = (name: string, cores: readonly number[], over: Parameters<typeof resident>[1] = {}) =>
    resident(name, { contract: contract({ threads: cores.length, cores }), ...over });
  const state = (...list: readonly ReturnType<typeof resident>[]) =>
    worker({ physicalCores: 8, cpuTopology, residents: residents(...list) });
  const serving = (...list: readonly ReturnType<typeof resident>[]) =>
    new Map(list.map(({ residentId }) => [residentId, { callsInFlight: 1 }]));

  it('are one processor of each physical core, from the last on, without the first', () => {
    expect(coresOf(state(), new Map())).toEqual({
      usable: 7,
      free: 7,
      cpus: { usable: [7, 6, 5, 4, 3, 2, 1], free: [7, 6, 5, 4, 3, 2, 1] },
    });
  });

  it('are claimed disjoint by weights in RAM, and had again while their resident is idle', () => {
    const a = onCores('a', [5, 6, 7]);
    const claim = (activity: Parameters<typeof coresOf>[1]) =>
      claimCores(state(a), coresOf(state(a), activity), true, { cpuCores: 2 });
    expect(claim(serving(a))).toMatchObject({ threads: 2, cores: [3, 4] });
    expect(claim(new Map())).toMatchObject({ threads: 2, cores: [6, 7] });
    expect(claimCores(state(a), coresOf(state(a), serving(a)), true, {})).toMatchObject({
      threads: 4,
      cores: [1, 2, 3, 4],
    });
  });

  it('are where the resident was bound last, after it was bound anew', () => {
    const moved = onCores('a', [6, 7], { cores: [1, 2] });
    expect(coresOf(state(moved), serving(moved)).cpus?.free).toEqual([7, 6, 5, 4, 3]);
  });

  it('on which other programs work for over half of the time are not had', () => {
    expect(coresOf({ ...state(), busyCpus: [6, 7] }, new Map()).cpus?.free).toEqual([5, 4, 3, 2, 1]);
  });

  it('on which others work are told by the log, and one is had although all are busy', () => {
    const place = (busyCpus: readonly number[]) =>
      decidedOf(decide(input('m', { worker: { ...state(), busyCpus } }))).contract.cores;
    expect(place([])).toEqual([1, 2, 3, 4, 5, 6, 7]);
    // Processor 13 is the second of core 5.
    expect(place([7, 13])).toEqual([1, 2, 3, 4, 6]);
    expect(place(cpuTopology.map(({ cpu }) => cpu))).toEqual([7]);
  });

  it('are as many as the curve of the log makes worthwhile, and the estimate of the speed is the curve’s', () => {
    const place = (byCoresGBps?: readonly number[]) =>
      decidedOf(
        decide(
          input('m', {
            worker: {
              ...state(),
              memoryBandwidth: { allGBps: 30, oneCoreGBps: 10, ...(byCoresGBps ? { byCoresGBps } : {}) },
            },
            ticket: ticket('m', { maxTokens: 1000 }),
          }),
        ),
      );
    expect(place().contract.threads).toBe(7);
    const bent = place([10, 20, 29, 29.5, 30, 30, 30, 30]);
    expect(bent.contract).toMatchObject({ threads: 3, cores: [5, 6, 7] });
    const slow = place([1, 2, 2.9, 2.95, 3, 3, 3, 3]);
    expect(slow.predicted.outputSeconds).toBeGreaterThan(bent.predicted.outputSeconds ?? Infinity);
  });

  it('of the common pool are the same for all that have nothing in RAM, at the other end', () => {
    expect(claimCores(state(), coresOf(state(), new Map()), false, {})).toMatchObject({
      threads: 2,
      cores: [1, 2],
    });
    expect(claimCores(state(), coresOf(state(), new Map()), false, { cpuPriority: 1 })).toMatchObject({
      threads: 3,
      cores: [1, 2, 3],
    });
  });

  it('of a pinned count are taken though they are busy, the free ones first, and the claim says which', () => {
    const a = onCores('a', [2, 3, 4, 5, 6, 7]);
    expect(claimCores(state(a), coresOf(state(a), serving(a)), true, { cpuCores: 3 })).toMatchObject({
      cores: [1, 6, 7],
    });
  });

  it('are not bound on machines of one or two cores, unless a count or a list is set', () => {
    const small = worker({ physicalCores: 2, cpuTopology: cpuTopology.slice(0, 2) });
    const free = coresOf(small, new Map());
    expect(claimCores(small, free, true, {})).not.toHaveProperty('cores');
    expect(claimCores(small, free, false, {})).not.toHaveProperty('cores');
    expect(claimCores(small, free, true, { cpuCores: 1 })).toMatchObject({ threads: 1, cores: [1] });
  });
});

describe('tokens per second in RAM', () => {
  it('are the bandwidth at n cores ÷ the bytes that a token reads: of a MoE its backbone and used ÷ count', () => {
    const moe = geometry({
      expertCount: 8,
      expertUsedCount: 2,
      blocks: [{ alwaysBytes: 96 * MIB, expertBytes: 800 * MIB, cache: attention() }],
    });
    // 96 + 4 of output + a quarter of 800.
    const byCoresGBps = [1000 * MIB, 3000 * MIB].map((bytes) => bytes / 1e9);
    const measured = { memoryBandwidth: { allGBps: 99, oneCoreGBps: 99, byCoresGBps } };
    const perSecond = (cores: number) => (ramBytesPerSecond(measured, cores) ?? 0) / bytesPerToken(moe);
    expect([1, 2, 9].map(perSecond)).toEqual([10 / 3, 10, 10].map((n) => expect.closeTo(n, 9) as number));
  });
  it('before any measurement follow from bytes ÷ (0.68 · memory rate) + 5 ms', () => {
    expect(secondsPerToken(6.8e9, 10e9)).toBeCloseTo(1.005, 12);
    expect(secondsPerToken(6.8e9, undefined)).toBeUndefined();
  });
});

import { describe, expect, it } from 'vitest';
import { deviceId, modelKey, RAM, residentId } from '#domain/ids.js';
import type { EvictionCandidate } from './eviction-candidate.js';
import { evictionSet } from './eviction.js';
import {
  agedCalls,
  expectedLoss,
  HALVED_EVERY_GAPS,
  loadSeconds,
  NEVER_CALLED_IDLE_SECONDS,
  RATE_HALVED_EVERY_SECONDS,
  RATE_PRIOR_SECONDS,
  SOON_SECONDS,
  soonness,
  soonnessByGaps,
  soonnessByRate,
  UNKNOWN_REMAINDER,
  UNKNOWN_SECONDS,
} from './loss.js';
import { calls, contract, measuredHistory, NOW_MS, ramBytes } from './testing/factories.js';
import { placementClassOf } from '#domain/placement-terms.js';

const candidate = (
  name: string,
  bytes: number,
  over: Partial<EvictionCandidate> = {},
): EvictionCandidate => ({
  residentId: residentId(name),
  modelKey: modelKey(name),
  band: 0,
  frees: new Map([[RAM, bytes]]),
  lossSeconds: 1,
  reloadSeconds: 1,
  idleSeconds: 0,
  calls: 1,
  agedCalls: 1,
  unknownSize: false,
  ...over,
});
const idle = (name: string, bytes: number, idleSeconds: number) => candidate(name, bytes, { idleSeconds });
const names = (
  need: number,
  list: readonly EvictionCandidate[],
  order: 'loss' | 'lru' | 'gdsf' | 'classic' = 'loss',
) =>
  evictionSet(new Map([[RAM, need]]), list, order)
    ?.victims.map((v) => v.residentId)
    .sort();

describe('the classic order (table of the rules)', () => {
  it('spares the 5 in the drop pass', () => {
    expect(names(12, [idle('5', 5, 900), idle('20', 20, 800), idle('40', 40, 1)], 'classic')).toEqual(['20']);
  });
  it('takes 5 and 10 where 12 is newest', () => {
    expect(names(12, [idle('5', 5, 900), idle('10', 10, 800), idle('12', 12, 1)], 'classic')).toEqual([
      '10',
      '5',
    ]);
  });
  it('takes the 40 alone where three small ones do not do', () => {
    expect(
      names(30, [idle('2', 2, 900), idle('3', 3, 800), idle('4', 4, 700), idle('40', 40, 1)], 'classic'),
    ).toEqual(['40']);
  });
});

describe('the order by loss', () => {
  const loses = (name: string, bytes: number, lossSeconds: number) => candidate(name, bytes, { lossSeconds });

  it('takes the set of least total loss, not the cheapest per byte', () => {
    expect(names(10, [loses('big', 10, 5), loses('small', 6, 2), loses('other', 5, 2.5)])).toEqual([
      'other',
      'small',
    ]);
    expect(names(10, [loses('big', 10, 4), loses('small', 6, 2), loses('other', 5, 2.5)])).toEqual(['big']);
  });

  it('prefers what frees more for little more loss, since who comes next finds it', () => {
    expect(names(10, [loses('enough', 10, 4), loses('more', 30, 5), loses('cheap', 9, 1.5)])).toEqual([
      'more',
    ]);
    expect(names(10, [loses('enough', 10, 4), loses('more', 30, 9), loses('cheap', 9, 1.5)])).toEqual([
      'enough',
    ]);
  });

  it('uses up a lower band before it touches a higher one', () => {
    const high = candidate('high', 10, { band: 1, lossSeconds: 0.1 });
    expect(names(10, [high, loses('low', 10, 90)])).toEqual(['low']);
    expect(names(15, [high, loses('low', 10, 90)])).toEqual(['high', 'low']);
  });

  it('breaks ties by longest idle, fewest calls, key', () => {
    expect(names(1, [idle('a', 1, 5), idle('b', 1, 9)])).toEqual(['b']);
    expect(names(1, [candidate('a', 1, { calls: 3 }), candidate('b', 1, { calls: 2 })])).toEqual(['b']);
    expect(names(1, [candidate('b', 1), candidate('a', 1)])).toEqual(['a']);
  });

  it('takes a resident of unknown size only when nothing else suffices', () => {
    const unknown = candidate('unknown', 50, { unknownSize: true, lossSeconds: 0 });
    expect(names(10, [unknown, loses('known', 10, 99)])).toEqual(['known']);
    expect(names(20, [unknown, loses('known', 10, 99)])).toEqual(['unknown']);
  });

  it('frees the deficit on each device', () => {
    const gpu = deviceId('gpu');
    const both = candidate('both', 5, {
      frees: new Map([
        [RAM, 5],
        [gpu, 5],
      ]),
      lossSeconds: 3,
    });
    const list = [both, candidate('ram', 5), candidate('gpu', 0, { frees: new Map([[gpu, 5]]) })];
    const set = evictionSet(
      new Map([
        [RAM, 5],
        [gpu, 5],
      ]),
      list,
      'loss',
    );
    expect(set?.victims.map((v) => v.residentId).sort()).toEqual(['gpu', 'ram']);
    expect(set?.exact).toBe(true);
  });

  it('evicts nobody when no set suffices, and nobody when nothing is lacking', () => {
    expect(names(100, [loses('a', 10, 1)])).toBeUndefined();
    expect(names(0, [loses('a', 10, 1)])).toEqual([]);
  });

  it('is exact up to 20 candidates and says when it is not', () => {
    const many = (n: number) => Array.from({ length: n }, (_, i) => loses(`r${i}`, 1 + i, 1 + (i % 3)));
    expect(evictionSet(new Map([[RAM, 9]]), many(20), 'loss')?.exact).toBe(true);
    expect(evictionSet(new Map([[RAM, 9]]), many(21), 'loss')?.exact).toBe(false);
  });
});

describe('the other orders', () => {
  it('lru takes the longest idle', () => {
    expect(names(5, [idle('young', 5, 1), idle('old', 5, 9)], 'lru')).toEqual(['old']);
  });
  it('gdsf takes the least aged calls · cost ÷ size', () => {
    const often = candidate('often', 5, { agedCalls: 50, idleSeconds: 99 });
    expect(names(5, [often, candidate('rare', 5, { agedCalls: 1 })], 'gdsf')).toEqual(['rare']);
    const dear = candidate('dear', 5, { reloadSeconds: 9 });
    expect(names(5, [dear, candidate('cheap', 5)], 'gdsf')).toEqual(['cheap']);
  });
  it('gdsf lets a call count half as much for every 600 s that it lies back', () => {
    const at = (...secondsAgo: number[]) =>
      agedCalls(calls('m', { arrivalsMs: secondsAgo.map((s) => NOW_MS - s * 1000) }), NOW_MS);
    expect(at(0)).toBe(1);
    expect(at(1200, 600, 0)).toBe(1.75);
    expect(at(...Array.from({ length: 50 }, () => 6000))).toBeLessThan(at(600));
  });
});

describe('the expected loss', () => {
  const every = (gapSeconds: number, n: number, idleSeconds: number) =>
    calls('m', {
      calls: n,
      arrivalsMs: Array.from(
        { length: n },
        (_, i) => NOW_MS - (idleSeconds + gapSeconds * (n - 1 - i)) * 1000,
      ),
      firstArrivalMs: NOW_MS - (idleSeconds + gapSeconds * (n - 1)) * 1000,
    });

  const ofUnknownGap = (idleSeconds: number): number =>
    SOON_SECONDS / (SOON_SECONDS + UNKNOWN_REMAINDER * (idleSeconds + UNKNOWN_SECONDS));

  it('of a model without gaps longer than its idleness counts one unknown gap alone', () => {
    expect(soonnessByGaps(undefined, NOW_MS)).toBeCloseTo(ofUnknownGap(NEVER_CALLED_IDLE_SECONDS), 12);
    expect(soonnessByGaps(every(100, 1, 40), NOW_MS)).toBeCloseTo(ofUnknownGap(40), 12);
    expect(soonnessByGaps(every(100, 10, 400), NOW_MS)).toBeCloseTo(ofUnknownGap(400), 12);
  });
  it('weighs what is left of each longer gap, half as much every 16 gaps back', () => {
    const weights = [...Array(9).keys()].map((back) => 0.5 ** (back / HALVED_EVERY_GAPS));
    const sum = weights.reduce((a, b) => a + b, 0);
    expect(soonnessByGaps(every(100, 10, 40), NOW_MS)).toBeCloseTo(
      (ofUnknownGap(40) + sum * Math.exp(-60 / SOON_SECONDS)) / (1 + sum),
      12,
    );
  });
  it('is less the longer a model of even gaps is idle beyond them, and more just before its gap ends', () => {
    const at = (idle: number) => soonness(every(300, 10, idle), NOW_MS);
    expect(at(290)).toBeGreaterThan(at(100));
    expect(at(310)).toBeLessThan(at(290));
    expect(at(3000)).toBeLessThan(at(310));
  });
  it('counts calls half as much every hour back, by the time seen of them and 2,400 s', () => {
    const counted = 1 + 0.5 + 0.25;
    const hour = RATE_HALVED_EVERY_SECONDS;
    const exposure = (hour / Math.LN2) * (1 - 0.25);
    const expected = (SOON_SECONDS * counted) / (exposure + RATE_PRIOR_SECONDS);
    expect(soonnessByRate(every(hour, 3, 0), NOW_MS)).toBeCloseTo(expected / (1 + expected), 12);
    expect(soonnessByRate(every(hour, 3, hour), NOW_MS)).toBeLessThan(expected / (1 + expected));
    expect(soonnessByRate(undefined, NOW_MS)).toBe(1);
  });
  it('takes the arrivals that are kept for all that came since the first of them', () => {
    const kept = every(60, 64, 0);
    expect(soonnessByRate({ ...kept, calls: 640, firstArrivalMs: NOW_MS - 38_400_000 }, NOW_MS)).toBe(
      soonnessByRate(kept, NOW_MS),
    );
  });
  it('is what the gaps say, brought down where calls have become few', () => {
    const beat = every(100, 60, 95);
    expect(soonnessByRate(beat, NOW_MS)).toBeLessThan(soonnessByGaps(beat, NOW_MS));
    const fresh = every(20, 60, 50);
    expect(soonness(fresh, NOW_MS)).toBe(soonnessByGaps(fresh, NOW_MS));
    const gaps = soonnessByGaps(beat, NOW_MS);
    expect(soonness(beat, NOW_MS)).toBeCloseTo(gaps ** (1 / 3) * soonnessByRate(beat, NOW_MS) ** (2 / 3), 12);
  });
  it('is soonness · (reload + wait)', () => {
    expect(expectedLoss(0.5, 10, 2)).toBe(6);
  });
  it('reloads in the median of the class, else of the other classes, else by its bytes', () => {
    const from = measuredHistory('m', contract(), [ramBytes(1)], { seconds: 7 });
    expect(loadSeconds(from, placementClassOf('F16', contract()), 0)).toEqual({
      seconds: 7,
      basis: 'measured',
    });
    expect(loadSeconds(from, placementClassOf('F16', contract({ contextTokens: 1 })), 0).basis).toBe(
      'measured other class',
    );
    expect(loadSeconds(undefined, placementClassOf('F16', contract()), 3e9)).toEqual({
      seconds: 4,
      basis: 'estimated',
    });
  });
});

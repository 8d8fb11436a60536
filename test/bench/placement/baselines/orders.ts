import type { SoonnessOf } from '#placement/contract.js';
import { SOON_SECONDS } from '#placement/loss.js';
import type { Scenario, SimCall } from '#placement/simulate/model.js';
import { type CacheOrder, diskSeconds, sizeOf } from './cache-scheduler.js';

/** Least recently used: when a call last began or ended on it. */
export const lru = (): CacheOrder => ({ name: 'LRU, regrouped queue', value: (resident) => resident.usedMs });

/** GreedyDual-Size (Cao and Irani 1997): H = L + cost ÷ size; L becomes the H of what is evicted. */
export const greedyDualSize = (): CacheOrder => greedyDual('GreedyDual-Size', false);

/** GreedyDual-Size-Frequency (Cherkasova 1998): H = L + calls · cost ÷ size. */
export const gdsf = (): CacheOrder => greedyDual('GDSF', true);

function greedyDual(name: string, byFrequency: boolean): CacheOrder {
  let inflation = 0;
  const calls = new Map<number, number>();
  const base = new Map<number, number>();
  return {
    name,
    called: (model) => {
      calls.set(model, (calls.get(model) ?? 0) + 1);
      base.set(model, inflation);
    },
    value: (resident, world) => {
      const frequency = byFrequency ? (calls.get(resident.model) ?? 1) : 1;
      const worth = (frequency * diskSeconds(world, resident.model)) / (sizeOf(resident) / 1e9);
      return (base.get(resident.model) ?? 0) + worth;
    },
    evicted(resident, world) {
      inflation = Math.max(inflation, this.value(resident, world));
      if (byFrequency) calls.delete(resident.model);
    },
  };
}

/** When each model is called next, from the future that only a clairvoyant has. */
function nextCalls(calls: readonly SimCall[]): (model: number, nowMs: number) => number {
  const times = new Map<number, number[]>();
  for (const call of calls) {
    const list = times.get(call.model);
    if (list) list.push(call.atMs);
    else times.set(call.model, [call.atMs]);
  }
  return (model, nowMs) => {
    const list = times.get(model) ?? [];
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((list[middle] ?? 0) > nowMs) high = middle;
      else low = middle + 1;
    }
    return list[low] ?? Infinity;
  };
}

/** Belady: the one whose next call is farthest goes. */
export function belady(calls: readonly SimCall[]): CacheOrder {
  const next = nextCalls(calls);
  return {
    name: 'Belady',
    value: (resident, world) => -next(resident.model, world.nowMs),
  };
}

/** Belady by cost: the one with the least load seconds per byte and second until its next call goes. */
export function costAwareBelady(calls: readonly SimCall[]): CacheOrder {
  const next = nextCalls(calls);
  return {
    name: 'Belady by cost',
    value: (resident, world) => {
      const seconds = (next(resident.model, world.nowMs) - world.nowMs) / 1000;
      if (seconds === Infinity) return 0;
      return diskSeconds(world, resident.model) / (sizeOf(resident) / 1e9) / Math.max(1, seconds);
    },
  };
}

/** Berth's soonness of a model from the rate that its calls are drawn from: λτ ÷ (1 + λτ). */
export const soonnessByTrueRate =
  (perSecond: SoonnessOf): SoonnessOf =>
  (key, nowMs) => {
    const expected = perSecond(key, nowMs) * SOON_SECONDS;
    return expected / (1 + expected);
  };

/** Berth's soonness of a model from its next call: e^(−T ÷ τ). */
export function soonnessByNextCall({ models, calls }: Pick<Scenario, 'models' | 'calls'>): SoonnessOf {
  const next = nextCalls(calls);
  const byKey = new Map(models.map(({ modelKey }, model) => [modelKey, model]));
  return (key, nowMs) => Math.exp((nowMs - next(byKey.get(key) ?? -1, nowMs)) / 1000 / SOON_SECONDS);
}

/** Berth's loss per byte with a soonness that is known, under the plain rules of a cache. */
export const bySoonness = (name: string, soonnessOf: SoonnessOf): CacheOrder => ({
  name,
  value: (resident, world) => {
    const soon = soonnessOf(world.model(resident.model).modelKey, world.nowMs);
    return (soon * diskSeconds(world, resident.model)) / (sizeOf(resident) / 1e9);
  },
});

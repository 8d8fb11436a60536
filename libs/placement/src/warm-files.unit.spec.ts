import { describe, expect, it } from 'vitest';
import type { PairHistory } from '#domain/history/history.js';
import { evolveHistory, initialHistory } from '#domain/history/history.js';
import { modelKey, type ModelKey, RAM, workerId } from '#domain/ids.js';
import { placementClassOf } from '#domain/placement-terms.js';
import { recorded } from './simulate/recorded.js';
import { contract, NOW_MS } from './testing/factories.js';
import { ReloadsByPlace } from './warm-files.js';

const GB = 1e9;

/** Loads of a model with weights of so many bytes, so many seconds ago. */
function history(
  model: string,
  bytes: number,
  loads: readonly { ago: number; seconds: number }[],
): PairHistory {
  let state = initialHistory(workerId('w'), modelKey(model));
  loads.forEach(({ ago, seconds }, i) => {
    const byDevice = [{ deviceId: RAM, weightsBytes: bytes, kvBytes: 0, computeBytes: 0, processBytes: 0 }];
    const data = {
      class: placementClassOf('F16', contract()),
      residentId: 'r',
      byDevice,
      hostAnonymousBytes: 0,
      hostResidentBytes: 0,
      seconds,
      predictedByDevice: [],
    };
    state = evolveHistory(
      state,
      recorded(i, `${model}-${i}`, NOW_MS - ago * 1000, { type: 'LoadMeasured', data }),
    );
  });
  return state;
}

const both = [
  { ago: 900, seconds: 12 },
  { ago: 600, seconds: 1.5 },
  { ago: 300, seconds: 10 },
];
const reload = (own: PairHistory, all: ReadonlyMap<ModelKey, PairHistory>, freeRamBytes?: number) =>
  new ReloadsByPlace(all, freeRamBytes).secondsOf(own, placementClassOf('F16', contract()));
const of = (...all: readonly PairHistory[]): ReadonlyMap<ModelKey, PairHistory> =>
  new Map(all.map((h) => [h.modelKey, h]));

describe('where a reload is read from', () => {
  const own = history('own', 10 * GB, both);
  const later = history('later', 20 * GB, [{ ago: 100, seconds: 9 }]);
  const before = history('before', 90 * GB, [{ ago: 5000, seconds: 9 }]);

  it('is the cache of files while what was read since its last load fits into free RAM with it', () => {
    expect(reload(own, of(own, later, before), 30 * GB)).toBe(1.5);
  });

  it('is the disk, in the median of the long loads, once more than that was read', () => {
    expect(reload(own, of(own, later, before), 30 * GB - 1)).toBe(11);
  });

  it('is not told of another class, whose loads may be longer for its size', () => {
    const other = placementClassOf('Q4', contract());
    expect(new ReloadsByPlace(of(own), 90 * GB).secondsOf(own, other)).toBeUndefined();
  });

  it('is not told of a model whose loads are alike, or when the free RAM is unknown', () => {
    expect(reload(later, of(own, later), 90 * GB)).toBeUndefined();
    expect(reload(history('new', GB, []), of(own), 90 * GB)).toBeUndefined();
    expect(reload(own, of(own))).toBeUndefined();
  });
});

import type { PairHistory } from '#domain/history/history.js';
import { median } from '#domain/median.js';
import type { ModelKey } from '#domain/ids.js';
import { classKey, type PlacementClass } from '#domain/placement-terms.js';
import { memo } from './memo.js';

/** Loads of one class that differ by so much are read from two places: the disk, and the system's cache of files. */
const APART = 3;

interface LastLoad {
  readonly atMs: number;
  /** Of its weights: what the load read. */
  readonly bytes: number;
}

/** When a model was last loaded on a worker; undefined when it never was. */
const lastLoadOf = memo((history: PairHistory): LastLoad | undefined => {
  let last: LastLoad | undefined;
  for (const { value, at } of history.measured.values()) {
    const atMs = Date.parse(at);
    if (last && last.atMs >= atMs) continue;
    last = { atMs, bytes: value.byDevice.reduce((sum, on) => sum + on.weightsBytes, 0) };
  }
  return last;
});

interface TwoPlaces {
  readonly diskSeconds: number;
  readonly cacheSeconds: number;
}

/** What the loads of each class take from each place; without those that do not lie apart. */
const placesOf = memo((history: PairHistory): ReadonlyMap<string, TwoPlaces> => {
  const places = new Map<string, TwoPlaces>();
  for (const [key, loads] of history.loadSeconds) {
    const all = loads.filter((seconds) => seconds > 0);
    const shortest = Math.min(...all);
    const longest = Math.max(...all);
    if (!(longest >= APART * shortest)) continue;
    const between = Math.sqrt(shortest * longest);
    const diskSeconds = median(all.filter((seconds) => seconds >= between));
    const cacheSeconds = median(all.filter((seconds) => seconds < between));
    if (diskSeconds === undefined || cacheSeconds === undefined) continue;
    places.set(key, { diskSeconds, cacheSeconds });
  }
  return places;
});

const keyOf = memo(classKey);

/**
 * Seconds of the next load of a class, where those that it had lie far apart: as from the cache of files when what was
 * read since its last load, and its own weights, are no more than the RAM that is free for it, else as from the disk. The
 * system drops the file that was last read longest ago.
 */
export class ReloadsByPlace {
  readonly #histories: ReadonlyMap<ModelKey, PairHistory>;
  readonly #freeRamBytes: number | undefined;
  /** Looked up once for all residents of a decision, and only when one of them asks. */
  #lastLoads: readonly LastLoad[] | undefined;

  /** @param histories of all models on the worker */
  constructor(histories: ReadonlyMap<ModelKey, PairHistory>, freeRamBytes: number | undefined) {
    this.#histories = histories;
    this.#freeRamBytes = freeRamBytes;
  }

  /** Undefined when the loads of the class are alike, or nothing is known of RAM. */
  secondsOf(history: PairHistory, plan: PlacementClass): number | undefined {
    const all = placesOf(history);
    const places = all.size === 0 ? undefined : all.get(keyOf(plan));
    const own = lastLoadOf(history);
    if (!places || !own || this.#freeRamBytes === undefined) return undefined;
    this.#lastLoads ??= [...this.#histories.values()].flatMap((other) => lastLoadOf(other) ?? []);
    let { bytes } = own;
    for (const last of this.#lastLoads) if (last.atMs > own.atMs) bytes += last.bytes;
    return bytes > this.#freeRamBytes ? places.diskSeconds : places.cacheSeconds;
  }
}

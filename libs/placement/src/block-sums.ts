import type { Geometry } from '#domain/geometry.js';
import { blockCache, type CacheShape } from './kv.js';
import { memo } from './memo.js';

/** Sums over the first n blocks, n from 0 on: what lies between two blocks is a difference of two of them. */
export type Sums = readonly number[];

export const between = (sums: Sums, from: number, to: number): number =>
  to > from ? (sums[to] ?? 0) - (sums[from] ?? 0) : 0;

/** Of weights, so that a plan is priced without walking its blocks. */
export interface BlockSums {
  readonly always: Sums;
  readonly experts: Sums;
}

export const blockSumsOf = memo(({ blocks }: Geometry): BlockSums => ({
  always: running(blocks.map((b) => b.alwaysBytes)),
  experts: running(blocks.map((b) => b.expertBytes)),
}));

/** Of the cache. */
export interface CacheSums {
  readonly kv: Sums;
  readonly state: Sums;
  /** Cache, state and weights together: what leaves a device with each block. */
  readonly withWeights: Sums;
}

export const NO_CACHE: CacheSums = { kv: [], state: [], withWeights: [] };

/** Contexts, slots and KV types that are kept by geometry; more than any ladder of one model looks at. */
const MOST_KEPT = 64;
const kept = memo((_: Geometry) => new Map<string, CacheSums>());

export function cacheSumsOf(geometry: Geometry, shape: CacheShape): CacheSums {
  const caches = kept(geometry);
  const key = `${shape.kvType}|${shape.contextTokens}|${shape.slots}|${shape.microBatch}`;
  const known = caches.get(key);
  if (known) return known;
  const kv = [0];
  const state = [0];
  const withWeights = [0];
  for (const { cache, alwaysBytes, expertBytes } of geometry.blocks) {
    const { kvBytes, stateBytes } = blockCache(cache, shape);
    kv.push((kv.at(-1) ?? 0) + kvBytes);
    state.push((state.at(-1) ?? 0) + stateBytes);
    withWeights.push((withWeights.at(-1) ?? 0) + kvBytes + stateBytes + alwaysBytes + expertBytes);
  }
  const made = { kv, state, withWeights };
  if (caches.size >= MOST_KEPT) caches.clear();
  caches.set(key, made);
  return made;
}

function running(values: readonly number[]): Sums {
  const result = [0];
  let sum = 0;
  for (const value of values) result.push((sum += value));
  return result;
}

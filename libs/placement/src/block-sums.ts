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
const kept = memo((_: Geometry): { readonly shape: CacheShape; readonly sums: CacheSums }[] => []);

const isSameShape = (a: CacheShape, b: CacheShape): boolean =>
  a.contextTokens === b.contextTokens &&
  a.kvType === b.kvType &&
  a.slots === b.slots &&
  a.microBatch === b.microBatch;

export function cacheSumsOf(geometry: Geometry, shape: CacheShape): CacheSums {
  const caches = kept(geometry);
  for (const known of caches) if (isSameShape(known.shape, shape)) return known.sums;
  const kv = [0];
  const state = [0];
  const withWeights = [0];
  let kvSum = 0;
  let stateSum = 0;
  let weightSum = 0;
  for (const { cache, alwaysBytes, expertBytes } of geometry.blocks) {
    const { kvBytes, stateBytes } = blockCache(cache, shape);
    kv.push((kvSum += kvBytes));
    state.push((stateSum += stateBytes));
    withWeights.push((weightSum += kvBytes + stateBytes + alwaysBytes + expertBytes));
  }
  const { contextTokens, slots, kvType, microBatch } = shape;
  const sums = { kv, state, withWeights };
  if (caches.length >= MOST_KEPT) caches.length = 0;
  caches.push({ shape: { contextTokens, slots, kvType, microBatch }, sums });
  return sums;
}

function running(values: readonly number[]): Sums {
  const result = [0];
  let sum = 0;
  for (const value of values) result.push((sum += value));
  return result;
}

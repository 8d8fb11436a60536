import { MIB } from '#domain/units.js';

/** `llama_kv_cache: size = 64.00 MiB (…)`, one per cache; hybrid and window models have several. */
const CACHE_SIZE = /llama_(?:kv_cache|memory_recurrent)\w*: size =\s+([\d.]+) MiB/g;

/**
 * What the caches take, from the engine's own lines. The library reports context memory as one sum; the rest of it is
 * compute and output buffers.
 * @returns bytes, to the hundredth of a MiB that the lines give; 0 for an encoder, which keeps no cache.
 */
export function kvBytesFromLines(text: string): number {
  let mib = 0;
  for (const match of text.matchAll(CACHE_SIZE)) mib += Number(match[1]);
  return Math.round(mib * MIB);
}

/** Context memory as its two terms; the sum is exact whatever the lines say. */
export function splitContextBytes(
  contextBytes: number,
  kvBytes: number,
): { kvBytes: number; computeBytes: number } {
  const kv = Math.min(kvBytes, contextBytes);
  return { kvBytes: kv, computeBytes: contextBytes - kv };
}

import type { KvType } from '#domain/placement-terms.js';
import { MIB } from '#domain/units.js';

/** The last line of a context: all its buffers have been told by then. */
export const CONTEXT_IS_TOLD = /compute buffer size =/;

/** The last lines of the weights: where they lie, one per buffer. */
export const WEIGHTS_ARE_TOLD = /model buffer size =/;

/** `llama_kv_cache: size = 64.00 MiB (  4096 cells,  16 layers,  1/1 seqs), K (f16): …`, one per cache. */
const CACHE =
  /llama_(kv_cache|memory_recurrent)\w*: size =\s+([\d.]+) MiB(?: \(\s*(\d+) cells,\s*\d+ layers,\s*(\d+)\/\d+ seqs\))?/g;

/** `load_tensors: CPU_Mapped model buffer size = 200.14 MiB`, one per buffer. */
const MODEL_BUFFER = /load_tensors:\s+(\S+) model buffer size =\s+([\d.]+) MiB/g;

/** A row of the cache is a whole number of blocks of its type, and heads are multiples of 32 values. */
const ROW_STEP_BYTES: Readonly<Record<KvType, number>> = { f16: 64, q8_0: 34, q4_0: 18 };

/** The lines round to a hundredth of a MiB. */
const ROUNDING_BYTES = 0.0051 * MIB;

/**
 * What the caches take, from the engine's own lines: the library reports context memory as one sum. Where the number of
 * cells is told, the rounding of the line is undone, since all rows of a cache are equally long.
 * @returns bytes; 0 for an encoder, which keeps no cache.
 */
export function kvBytesFromLines(text: string, kvType: KvType): number {
  let bytes = 0;
  for (const [, cache, mib, cells, streams] of text.matchAll(CACHE)) {
    const told = Number(mib) * MIB;
    const rows = cache === 'kv_cache' ? Number(cells) * Number(streams) : NaN;
    const step = rows * ROW_STEP_BYTES[kvType];
    const exact = Math.round(told / step) * step;
    bytes += Math.abs(exact - told) <= ROUNDING_BYTES ? exact : Math.round(told);
  }
  return bytes;
}

/** Context memory as its two terms; the sum is exact whatever the lines say. */
export function splitContextBytes(
  contextBytes: number,
  kvBytes: number,
): { kvBytes: number; computeBytes: number } {
  const kv = Math.min(kvBytes, contextBytes);
  return { kvBytes: kv, computeBytes: contextBytes - kv };
}

/** Weights that are copied into memory of the process (repacked for the processor) instead of mapped from the file. */
export function copiedWeightBytesFromLines(text: string): number {
  let mib = 0;
  for (const [, buffer, size] of text.matchAll(MODEL_BUFFER)) {
    if (buffer?.endsWith('_Mapped') !== true) mib += Number(size);
  }
  return Math.round(mib * MIB);
}

import type { BlockKind, Geometry } from '#domain/geometry.js';
import type { KvType } from '#domain/placement-terms.js';

/** Bytes per cached element; a quantised block of 32 carries its own scale. */
const ELEMENT_BYTES: Readonly<Record<KvType, number>> = { f16: 2, q8_0: 34 / 32, q4_0: 18 / 32 };

/** llama.cpp pads contexts and windows to this many cells. */
export const CELL_PAD = 256;
export const DEFAULT_MICRO_BATCH = 512;

export const padCells = (cells: number): number => Math.ceil(cells / CELL_PAD) * CELL_PAD;

export interface CacheShape {
  /** Tokens per slot. */
  readonly contextTokens: number;
  readonly slots: number;
  readonly kvType: KvType;
  readonly microBatch: number;
  /** One cache shared by all slots; else one per slot. */
  readonly unified?: boolean;
}

/** Elements that one cell of a block holds; 0 for a block whose cache does not grow with tokens. */
export function elementsPerCell(block: BlockKind): number {
  switch (block.kind) {
    case 'attention':
    case 'window':
      return block.kvHeads * (block.keyLength + block.valueLength);
    case 'mla':
      return block.kvLoraRank + block.ropeDims;
    case 'recurrent':
      return 0;
  }
}

/** Cells of a sliding-window block for one cache: never more than the context, at least a window per sequence. */
export function windowCells(
  contextTokens: number,
  windowTokens: number,
  sequences: number,
  microBatch: number = DEFAULT_MICRO_BATCH,
): number {
  return padCells(Math.min(contextTokens, windowTokens * sequences + microBatch));
}

/** Bytes of a recurrent block for one sequence; the same at any context. */
export function recurrentBytes(block: Extract<BlockKind, { kind: 'recurrent' }>): number {
  const { convKernel, innerSize, groups, stateSize } = block;
  return 4 * (Math.max(0, convKernel - 1) * (innerSize + 2 * groups * stateSize) + stateSize * innerSize);
}

export interface BlockCache {
  readonly kvBytes: number;
  readonly stateBytes: number;
}

/** Cache of one block over all slots. A hybrid counts each block by its own kind. */
export function blockCache(block: BlockKind, shape: CacheShape): BlockCache {
  const { contextTokens, slots, kvType, microBatch, unified = false } = shape;
  const bytes = ELEMENT_BYTES[kvType];
  switch (block.kind) {
    case 'attention':
    case 'mla':
      return {
        kvBytes: Math.ceil(padCells(contextTokens) * slots * elementsPerCell(block) * bytes),
        stateBytes: 0,
      };
    case 'window': {
      const cells = unified
        ? windowCells(contextTokens * slots, block.windowTokens, slots, microBatch)
        : windowCells(contextTokens, block.windowTokens, 1, microBatch) * slots;
      return { kvBytes: Math.ceil(cells * elementsPerCell(block) * bytes), stateBytes: 0 };
    }
    case 'recurrent':
      return { kvBytes: 0, stateBytes: recurrentBytes(block) * slots };
  }
}

/** What one more token costs over all blocks; windows are left out, since they stop growing. */
export function kvBytesPerToken(geometry: Pick<Geometry, 'blocks'>, kvType: KvType): number {
  let elements = 0;
  for (const { cache } of geometry.blocks) {
    if (cache.kind === 'attention' || cache.kind === 'mla') elements += elementsPerCell(cache);
  }
  return elements * ELEMENT_BYTES[kvType];
}

/** A quantised cache needs head sizes that divide by 32. @returns the reason when a block's does not. */
export function whyKvTypeRefused(geometry: Pick<Geometry, 'blocks'>, kvType: KvType): string | undefined {
  if (kvType === 'f16') return undefined;
  for (const { cache } of geometry.blocks) {
    if (cache.kind !== 'attention' && cache.kind !== 'window') continue;
    const odd = [cache.keyLength, cache.valueLength].find((length) => length % 32 !== 0);
    if (odd !== undefined)
      return `a ${kvType} KV cache needs head sizes that divide by 32, and this model's is ${odd}`;
  }
  return undefined;
}

/**
 * Bytes per token as calls showed it: the median over the last 20 of KV bytes ÷ tokens held, from at least two.
 * @returns undefined for fewer, and for a cache that reads the same at every count (preallocated).
 */
export function observedBytesPerToken(
  readings: readonly { readonly kvBytes: number; readonly tokensHeld: number }[],
): number | undefined {
  const last = readings.filter((r) => r.tokensHeld > 0).slice(-20);
  if (last.length < 2 || new Set(last.map((r) => r.kvBytes)).size === 1) return undefined;
  const ratios = last.map((r) => r.kvBytes / r.tokensHeld).sort((a, b) => a - b);
  const middle = Math.floor(ratios.length / 2);
  const upper = ratios[middle] ?? 0;
  return ratios.length % 2 === 1 ? upper : ((ratios[middle - 1] ?? upper) + upper) / 2;
}

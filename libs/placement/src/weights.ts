import type { Geometry } from '#domain/geometry.js';
import { blockSumsOf } from './block-sums.js';
import { memo } from './memo.js';

/**
 * Which blocks `gpuLayers` puts on the card depends on the engine's build: `blocks-first` counts blocks only,
 * `output-first` (newer llama.cpp) counts the output as the first of them.
 */
export type OffloadOrder = 'blocks-first' | 'output-first';

export interface Offload {
  /** First block on the card; blocks below it are in RAM. */
  readonly firstBlock: number;
  readonly outputOnCard: boolean;
}

/** @param gpuLayers negative, or more than there are, means everything. */
export function offloadOf(blocks: number, gpuLayers: number, order: OffloadOrder): Offload {
  if (gpuLayers < 0 || gpuLayers > blocks) return { firstBlock: 0, outputOnCard: true };
  if (order === 'blocks-first') return { firstBlock: blocks - gpuLayers, outputOnCard: false };
  return gpuLayers === 0
    ? { firstBlock: blocks, outputOnCard: false }
    : { firstBlock: blocks - (gpuLayers - 1), outputOnCard: true };
}

export const backboneBytes = (geometry: Geometry): number =>
  (blockSumsOf(geometry).always.at(-1) ?? 0) +
  (geometry.tiedOutput ? geometry.tokenEmbeddingBytes : geometry.outputBytes) +
  geometry.otherBytes;

export const hasExperts = (geometry: Geometry): boolean => (blockSumsOf(geometry).experts.at(-1) ?? 0) > 0;

/**
 * Bytes that one token reads: a dense model all of its weights, a MoE its backbone and used ÷ count of its experts.
 */
export const bytesPerToken = memo((geometry: Geometry): number => {
  const experts = blockSumsOf(geometry).experts.at(-1) ?? 0;
  const share = geometry.expertCount > 0 ? geometry.expertUsedCount / geometry.expertCount : 1;
  return backboneBytes(geometry) + experts * share;
});

/**
 * Expert layers kept in RAM (N) for a card budget: after the backbone, experts stay on the card from the highest block
 * downward. @returns undefined when the backbone alone is larger than the card.
 */
export function cpuMoeLayersForCard(
  expertBytesByBlock: readonly number[],
  backbone: number,
  cardBytes: number,
): number | undefined {
  let left = cardBytes - backbone;
  if (left < 0) return undefined;
  let lowestKept = expertBytesByBlock.length;
  for (let block = expertBytesByBlock.length - 1; block >= 0; block--) {
    left -= expertBytesByBlock[block] ?? 0;
    if (left < 0) break;
    lowestKept = block;
  }
  return lowestKept;
}

/** N for a RAM budget: experts fill RAM from block 0 upward, the overflow rides the card. */
export function cpuMoeLayersForRam(expertBytesByBlock: readonly number[], ramBytes: number): number {
  let left = ramBytes;
  for (let block = 0; block < expertBytesByBlock.length; block++) {
    left -= expertBytesByBlock[block] ?? 0;
    if (left < 0) return block;
  }
  return expertBytesByBlock.length;
}

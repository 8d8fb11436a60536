import type { Geometry } from '#domain/geometry.js';
import { blockSumsOf } from './block-sums.js';

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

export interface WeightsPlan {
  readonly gpuLayers: number;
  readonly cpuMoeLayers: number;
  readonly order: OffloadOrder;
}

export interface SplitBytes {
  readonly ramBytes: number;
  /** By block on the card, from the first offloaded one; empty without any. */
  readonly cardByBlock: readonly number[];
  readonly firstBlock: number;
  /** Output, tied copy and the tensors outside blocks that follow it. */
  readonly cardOutputBytes: number;
}

/**
 * Weights by place. The token embedding is always in RAM; with a tied output it is held once more where the output is.
 * Experts of the first `cpuMoeLayers` blocks stay in RAM.
 */
export function splitWeights(geometry: Geometry, plan: WeightsPlan): SplitBytes {
  const { blocks, tokenEmbeddingBytes, outputBytes, tiedOutput, otherBytes } = geometry;
  const { firstBlock, outputOnCard } = offloadOf(blocks.length, plan.gpuLayers, plan.order);
  let ramBytes = tokenEmbeddingBytes;
  const cardByBlock: number[] = [];
  blocks.forEach((block, index) => {
    if (index < firstBlock) {
      ramBytes += block.alwaysBytes + block.expertBytes;
      return;
    }
    const expertsInRam = index < plan.cpuMoeLayers;
    ramBytes += expertsInRam ? block.expertBytes : 0;
    cardByBlock.push(block.alwaysBytes + (expertsInRam ? 0 : block.expertBytes));
  });
  // In RAM a tied output reads the token embedding where it lies; on a card it is a second copy.
  const cardOutputBytes = outputOnCard ? (tiedOutput ? tokenEmbeddingBytes : outputBytes) + otherBytes : 0;
  if (!outputOnCard) ramBytes += outputBytes + otherBytes;
  return { ramBytes, cardByBlock, firstBlock, cardOutputBytes };
}

export const backboneBytes = (geometry: Geometry): number =>
  (blockSumsOf(geometry).always.at(-1) ?? 0) +
  (geometry.tiedOutput ? geometry.tokenEmbeddingBytes : geometry.outputBytes) +
  geometry.otherBytes;

export const hasExperts = (geometry: Geometry): boolean => (blockSumsOf(geometry).experts.at(-1) ?? 0) > 0;

/**
 * Bytes that one token reads: a dense model all of its weights, a MoE its backbone and used ÷ count of its experts.
 */
export function bytesPerToken(geometry: Geometry): number {
  const experts = blockSumsOf(geometry).experts.at(-1) ?? 0;
  const share = geometry.expertCount > 0 ? geometry.expertUsedCount / geometry.expertCount : 1;
  return backboneBytes(geometry) + experts * share;
}

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

import type { Geometry } from '#domain/geometry.js';
import { type DeviceId, RAM } from '#domain/ids.js';
import type { PlacementClass } from '#domain/placement-terms.js';
import { between, blockSumsOf, cacheSumsOf, NO_CACHE } from './block-sums.js';
import { padCells } from './kv.js';
import { offloadOf, type OffloadOrder } from './weights.js';

/** Bytes on one device by arithmetic from the file's header. */
export interface HeaderBytes {
  readonly weightsBytes: number;
  readonly kvBytes: number;
  readonly stateBytes: number;
  /** Work buffers: an estimate, since the graph is the engine's. */
  readonly computeBytes: number;
}

/** What a class says of a plan, as far as arithmetic needs it. */
export type PricedPlan = Pick<
  PlacementClass,
  | 'devices'
  | 'gpuLayers'
  | 'cpuMoeLayers'
  | 'kvType'
  | 'contextTokens'
  | 'slots'
  | 'microBatch'
  | 'flashAttention'
> & {
  /** Blocks on each device, in the order of `devices`; absent: as even as can be. */
  readonly blocksByDevice?: readonly number[];
};

/** Prices a plan from the header: weights and cache exactly, work buffers as an estimate. */
export function headerBytes(
  geometry: Geometry,
  plan: PricedPlan,
  order: OffloadOrder,
): ReadonlyMap<DeviceId, HeaderBytes> {
  const { blocks, tokenEmbeddingBytes, outputBytes, tiedOutput, otherBytes } = geometry;
  const { firstBlock, outputOnCard } = offloadOf(blocks.length, plan.gpuLayers, order);
  const { always, experts } = blockSumsOf(geometry);
  const cache = geometry.kind === 'chat' ? cacheSumsOf(geometry, plan) : NO_CACHE;
  const compute = computeBytes(geometry, plan);
  const kept = Math.min(blocks.length, plan.cpuMoeLayers);
  const result = new Map<DeviceId, HeaderBytes>();
  result.set(RAM, {
    weightsBytes:
      tokenEmbeddingBytes +
      between(always, 0, firstBlock) +
      between(experts, 0, Math.max(firstBlock, kept)) +
      (outputOnCard ? 0 : outputBytes + otherBytes),
    kvBytes: between(cache.kv, 0, firstBlock),
    stateBytes: between(cache.state, 0, firstBlock),
    // With every block on cards the host computes next to nothing.
    computeBytes: firstBlock > 0 ? compute : 0,
  });
  let from = firstBlock;
  plan.devices.forEach((deviceId, index) => {
    const last = index === plan.devices.length - 1;
    const to = last
      ? blocks.length
      : Math.min(blocks.length, from + blocksOn(plan, index, blocks.length - firstBlock));
    const onCard = last && outputOnCard ? (tiedOutput ? tokenEmbeddingBytes : outputBytes) + otherBytes : 0;
    result.set(deviceId, {
      weightsBytes: between(always, from, to) + between(experts, Math.max(from, kept), to) + onCard,
      kvBytes: between(cache.kv, from, to),
      stateBytes: between(cache.state, from, to),
      computeBytes: to > from || onCard > 0 ? compute : 0,
    });
    from = to;
  });
  return result;
}

/** The first blocks on the first card, as an engine splits by layer; as even as can be unless the plan says. */
function blocksOn(plan: PricedPlan, index: number, offloaded: number): number {
  const parts = plan.devices.length;
  return (
    plan.blocksByDevice?.[index] ??
    Math.floor(((index + 1) * offloaded) / parts) - Math.floor((index * offloaded) / parts)
  );
}

/**
 * Work buffers grow with the micro-batch, the width and the vocabulary; without flash attention also with the context,
 * once per attention head. Fitted to what llama.cpp printed for small dense and MoE models; marked `estimated`.
 */
export function computeBytes(
  geometry: Geometry,
  plan: Pick<PricedPlan, 'contextTokens' | 'slots' | 'microBatch' | 'flashAttention'>,
): number {
  const { embeddingLength, vocabularyTokens } = geometry;
  const tokens = Math.min(plan.microBatch, Math.max(1, plan.contextTokens * plan.slots));
  const widths = 4 * tokens * (vocabularyTokens + 12 * embeddingLength);
  const heads = plan.flashAttention ? 0 : attentionHeads(geometry);
  return widths + 4 * tokens * heads * padCells(plan.contextTokens);
}

/** The header's query heads are not kept; width ÷ head size is what nearly every architecture has. */
function attentionHeads(geometry: Geometry): number {
  for (const { cache } of geometry.blocks) {
    if (cache.kind === 'attention' || cache.kind === 'window')
      return Math.max(cache.kvHeads, Math.round(geometry.embeddingLength / Math.max(1, cache.keyLength)));
  }
  return 0;
}

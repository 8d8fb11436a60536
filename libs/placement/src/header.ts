import type { Geometry } from '#domain/geometry.js';
import { type DeviceId, RAM } from '#domain/ids.js';
import type { PlacementClass } from '#domain/placement-terms.js';
import { blockCache, padCells } from './kv.js';
import { type OffloadOrder, splitWeights } from './weights.js';

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
  const split = splitWeights(geometry, { ...plan, order });
  const sums = new Map<DeviceId, { weights: number; kv: number; state: number }>();
  const at = (deviceId: DeviceId): { weights: number; kv: number; state: number } => {
    const sum = sums.get(deviceId) ?? { weights: 0, kv: 0, state: 0 };
    sums.set(deviceId, sum);
    return sum;
  };
  at(RAM).weights += split.ramBytes;
  const cards = cardOfBlocks(split.cardByBlock.length, plan);
  split.cardByBlock.forEach((bytes, index) => {
    at(cards[index] ?? RAM).weights += bytes;
  });
  const lastCard = plan.devices.at(-1);
  if (lastCard !== undefined && split.cardOutputBytes > 0) at(lastCard).weights += split.cardOutputBytes;
  if (geometry.kind === 'chat') {
    geometry.blocks.forEach(({ cache }, index) => {
      const { kvBytes, stateBytes } = blockCache(cache, plan);
      const place = at(index < split.firstBlock ? RAM : (cards[index - split.firstBlock] ?? RAM));
      place.kv += kvBytes;
      place.state += stateBytes;
    });
  }
  return new Map(
    [...sums].map(([deviceId, sum]) => [
      deviceId,
      {
        weightsBytes: sum.weights,
        kvBytes: sum.kv,
        stateBytes: sum.state,
        // With every block on cards the host computes next to nothing.
        computeBytes: deviceId !== RAM || split.firstBlock > 0 ? computeBytes(geometry, plan) : 0,
      },
    ]),
  );
}

/** The card of each offloaded block: the first ones on the first card, as an engine splits by layer. */
export function cardOfBlocks(
  blocks: number,
  plan: Pick<PricedPlan, 'devices' | 'blocksByDevice'>,
): readonly DeviceId[] {
  const counts = plan.blocksByDevice ?? evenSplit(blocks, plan.devices.length);
  const cards: DeviceId[] = [];
  plan.devices.forEach((deviceId, index) => {
    for (let i = 0; i < (counts[index] ?? 0); i++) cards.push(deviceId);
  });
  const last = plan.devices.at(-1);
  while (last !== undefined && cards.length < blocks) cards.push(last);
  return cards;
}

const evenSplit = (blocks: number, parts: number): readonly number[] =>
  Array.from(
    { length: parts },
    (_, i) => Math.floor(((i + 1) * blocks) / parts) - Math.floor((i * blocks) / parts),
  );

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

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
  readonly blocksByDevice?: readonly number[] | undefined;
};

/** Columns of a priced plan: each device has these four figures, RAM first, then the plan's devices in their order. */
export const WEIGHTS = 0;
export const KV = 1;
export const STATE = 2;
export const COMPUTE = 3;
const COLUMNS = 4;

/** Figures of one plan; the same table is filled anew for the next, so it is read at once and never kept. */
export type HeaderTable = Float64Array;

export const figureOf = (table: HeaderTable, row: number, column: number): number =>
  table[row * COLUMNS + column] ?? 0;

let scratch: HeaderTable = new Float64Array(COLUMNS * 17);

/**
 * Prices a plan from the header: weights and cache exactly, work buffers as an estimate. Plans are priced by the hundred
 * for each decision, so nothing is made for one of them.
 * @returns a table that the next call overwrites
 */
export function priceFromHeader(geometry: Geometry, plan: PricedPlan, order: OffloadOrder): HeaderTable {
  const { blocks, tokenEmbeddingBytes, outputBytes, tiedOutput, otherBytes } = geometry;
  const { devices } = plan;
  if (scratch.length < COLUMNS * (devices.length + 1))
    scratch = new Float64Array(COLUMNS * (devices.length + 1));
  const { firstBlock, outputOnCard } = offloadOf(blocks.length, plan.gpuLayers, order);
  const { always, experts } = blockSumsOf(geometry);
  const cache = geometry.kind === 'chat' ? cacheSumsOf(geometry, plan) : NO_CACHE;
  const compute = computeBytes(geometry, plan);
  const kept = Math.min(blocks.length, plan.cpuMoeLayers);
  scratch[WEIGHTS] =
    tokenEmbeddingBytes +
    between(always, 0, firstBlock) +
    between(experts, 0, Math.max(firstBlock, kept)) +
    (outputOnCard ? 0 : outputBytes + otherBytes);
  scratch[KV] = between(cache.kv, 0, firstBlock);
  scratch[STATE] = between(cache.state, 0, firstBlock);
  // With every block on cards the host computes next to nothing.
  scratch[COMPUTE] = firstBlock > 0 ? compute : 0;
  let from = firstBlock;
  for (let index = 0; index < devices.length; index++) {
    const last = index === devices.length - 1;
    const to = last
      ? blocks.length
      : Math.min(blocks.length, from + blocksOn(plan, index, blocks.length - firstBlock));
    const onCard = last && outputOnCard ? (tiedOutput ? tokenEmbeddingBytes : outputBytes) + otherBytes : 0;
    const row = (index + 1) * COLUMNS;
    scratch[row + WEIGHTS] = between(always, from, to) + between(experts, Math.max(from, kept), to) + onCard;
    scratch[row + KV] = between(cache.kv, from, to);
    scratch[row + STATE] = between(cache.state, from, to);
    scratch[row + COMPUTE] = to > from || onCard > 0 ? compute : 0;
    from = to;
  }
  return scratch;
}

/** The same as an object for each device. */
export function headerBytes(
  geometry: Geometry,
  plan: PricedPlan,
  order: OffloadOrder,
): ReadonlyMap<DeviceId, HeaderBytes> {
  const table = priceFromHeader(geometry, plan, order);
  return new Map(
    [RAM, ...plan.devices].map((deviceId, row) => [
      deviceId,
      {
        weightsBytes: figureOf(table, row, WEIGHTS),
        kvBytes: figureOf(table, row, KV),
        stateBytes: figureOf(table, row, STATE),
        computeBytes: figureOf(table, row, COMPUTE),
      },
    ]),
  );
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

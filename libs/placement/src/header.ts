import type { Geometry } from '#domain/geometry.js';
import { type DeviceId, RAM } from '#domain/ids.js';
import type { PlacementClass } from '#domain/placement-terms.js';
import { between, type BlockSums, blockSumsOf, type CacheSums, cacheSumsOf, NO_CACHE } from './block-sums.js';
import { padCells } from './kv.js';
import { memo } from './memo.js';
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

/** What tells the layouts of one model at one context apart. */
type LaidOut = Pick<PricedPlan, 'gpuLayers' | 'cpuMoeLayers' | 'blocksByDevice'>;

/**
 * A header at one context, KV type and micro-batch: prices every layout of them, weights and cache exactly, work buffers
 * as an estimate. Plans are priced by the hundred for each decision, so nothing is looked up or made for one of them.
 */
export class HeaderPrices {
  readonly #geometry: Geometry;
  readonly #weights: BlockSums;
  readonly #cache: CacheSums;
  readonly #compute: number;

  constructor(geometry: Geometry, plan: PricedPlan) {
    this.#geometry = geometry;
    this.#weights = blockSumsOf(geometry);
    this.#cache = geometry.kind === 'chat' ? cacheSumsOf(geometry, plan) : NO_CACHE;
    this.#compute = computeBytes(geometry, plan);
  }

  /** @returns a table that the next call overwrites */
  all(plan: LaidOut & { readonly devices: readonly DeviceId[] }, order: OffloadOrder): HeaderTable {
    const cards = plan.devices.length;
    if (scratch.length < COLUMNS * (cards + 1)) scratch = new Float64Array(COLUMNS * (cards + 1));
    this.#ram(plan, order);
    this.#cards(plan, cards, order, 1, cards);
    return scratch;
  }

  /**
   * One row alone: the search over layouts looks at one device at a time.
   * @returns a table of which that row is filled, and which the next call overwrites
   */
  row(layout: LaidOut, cards: number, order: OffloadOrder, row: number): HeaderTable {
    if (scratch.length < COLUMNS * (row + 1)) scratch = new Float64Array(COLUMNS * (row + 1));
    if (row === 0) this.#ram(layout, order);
    else this.#cards(layout, cards, order, row, row);
    return scratch;
  }

  #ram(plan: LaidOut, order: OffloadOrder): void {
    const { blocks, tokenEmbeddingBytes, outputBytes, otherBytes } = this.#geometry;
    const { always, experts } = this.#weights;
    const { firstBlock, outputOnCard } = offloadOf(blocks.length, plan.gpuLayers, order);
    const kept = Math.min(blocks.length, plan.cpuMoeLayers);
    scratch[WEIGHTS] =
      tokenEmbeddingBytes +
      between(always, 0, firstBlock) +
      between(experts, 0, Math.max(firstBlock, kept)) +
      (outputOnCard ? 0 : outputBytes + otherBytes);
    scratch[KV] = between(this.#cache.kv, 0, firstBlock);
    scratch[STATE] = between(this.#cache.state, 0, firstBlock);
    // With every block on cards the host computes next to nothing.
    scratch[COMPUTE] = firstBlock > 0 ? this.#compute : 0;
  }

  /** The rows of some cards, one after another. */
  #cards(plan: LaidOut, cards: number, order: OffloadOrder, firstRow: number, lastRow: number): void {
    const { blocks, tokenEmbeddingBytes, outputBytes, tiedOutput, otherBytes } = this.#geometry;
    const { always, experts } = this.#weights;
    const { kv, state } = this.#cache;
    const { firstBlock, outputOnCard } = offloadOf(blocks.length, plan.gpuLayers, order);
    const kept = Math.min(blocks.length, plan.cpuMoeLayers);
    let from = firstBlock;
    for (let row = 1; row <= lastRow; row++) {
      const last = row === cards;
      const to = last
        ? blocks.length
        : Math.min(blocks.length, from + blocksOn(plan, cards, row - 1, blocks.length - firstBlock));
      if (row >= firstRow) {
        const output =
          last && outputOnCard ? (tiedOutput ? tokenEmbeddingBytes : outputBytes) + otherBytes : 0;
        const at = row * COLUMNS;
        scratch[at + WEIGHTS] =
          between(always, from, to) + between(experts, Math.max(from, kept), to) + output;
        scratch[at + KV] = between(kv, from, to);
        scratch[at + STATE] = between(state, from, to);
        scratch[at + COMPUTE] = to > from || output > 0 ? this.#compute : 0;
      }
      from = to;
    }
  }
}

/** Contexts, slots and KV types that are kept by geometry; more than any ladder of one model looks at. */
const MOST_KEPT = 64;
const keptPrices = memo((_: Geometry): { readonly shape: PriceShape; readonly prices: HeaderPrices }[] => []);

type PriceShape = Pick<PricedPlan, 'contextTokens' | 'kvType' | 'slots' | 'microBatch' | 'flashAttention'>;

const isSameShape = (a: PriceShape, b: PriceShape): boolean =>
  a.contextTokens === b.contextTokens &&
  a.kvType === b.kvType &&
  a.slots === b.slots &&
  a.microBatch === b.microBatch &&
  a.flashAttention === b.flashAttention;

export function headerPrices(geometry: Geometry, plan: PricedPlan): HeaderPrices {
  const kept = keptPrices(geometry);
  for (const { shape, prices } of kept) if (isSameShape(shape, plan)) return prices;
  const { contextTokens, kvType, slots, microBatch, flashAttention } = plan;
  const prices = new HeaderPrices(geometry, plan);
  if (kept.length >= MOST_KEPT) kept.length = 0;
  kept.push({ shape: { contextTokens, kvType, slots, microBatch, flashAttention }, prices });
  return prices;
}

/** The same as an object for each device. */
export function headerBytes(
  geometry: Geometry,
  plan: PricedPlan,
  order: OffloadOrder,
): ReadonlyMap<DeviceId, HeaderBytes> {
  const table = headerPrices(geometry, plan).all(plan, order);
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
function blocksOn(plan: LaidOut, parts: number, index: number, offloaded: number): number {
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

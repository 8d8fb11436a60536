import type { Geometry } from '#domain/geometry.js';
import { RAM } from '#domain/ids.js';
import type { Rung } from '#domain/placement-terms.js';
import { formatBytes } from '#domain/units.js';
import { blockSumsOf, cacheSumsOf } from './block-sums.js';
import { DEFAULT_MICRO_BATCH } from './kv.js';
import type { EvictionField } from './eviction.js';
import type { Pins, Shape } from './ladder.js';
import { free, least, type Layout, type Pricing, shares } from './layout-terms.js';
import type { Snapshot } from './snapshot.js';
import { offloadedBlocks, splitToFit } from './split.js';

export type { Layout, Pricing } from './layout-terms.js';

/** Why a shape has no layout. */
export interface NoLayout {
  /** `same`: it amounts to another rung, at this context and at every smaller one. */
  readonly kind: 'never' | 'blocked' | 'same';
  readonly reason: string;
}

/**
 * The layers of a shape. `moe`: the most experts on the card that its room takes, down to none. `max-ram`: the fewest
 * layers on the card that bring the rest into the room of RAM. `max-gpu`: the most that the room of the card takes.
 */
export function layoutOf(
  snapshot: Snapshot,
  shape: Shape,
  contextTokens: number,
  pricing: Pricing,
  field: EvictionField,
): Layout | NoLayout {
  const geometry = shape.artifact.geometry;
  const all = (geometry?.blocks.length ?? 0) + 1;
  const { rung, pins } = shape;
  if (pins) {
    const pinned = pinnedLayout(shape, geometry, pricing, spreading(snapshot, shape), all);
    return 'reason' in pinned || !isSplit(shape) || holdsBytes(pins)
      ? pinned
      : splitToFit(snapshot, shape, pinned, pricing, field);
  }
  if (rung === 'ram-only') return RAM_ONLY;
  if (rung === 'gpu-only' || rung === '4bit') {
    const layout = { gpuLayers: all, cpuMoeLayers: 0 };
    return isSplit(shape) ? splitToFit(snapshot, shape, layout, pricing, field) : layout;
  }
  return searched(snapshot, shape, rung, contextTokens, pricing, all);
}

/** A layout of so many layers, over as many devices as the shape has. */
type On = (gpuLayers: number, cpuMoeLayers?: number) => Layout;

const spreading =
  (snapshot: Snapshot, shape: Shape): On =>
  (gpuLayers, cpuMoeLayers = 0) =>
    spread(snapshot, shape, { gpuLayers, cpuMoeLayers });

const RAM_ONLY: Layout = { gpuLayers: 0, cpuMoeLayers: 0 };

function searched(
  snapshot: Snapshot,
  shape: Shape,
  rung: Exclude<Rung, 'ram-only' | 'gpu-only' | '4bit'>,
  contextTokens: number,
  pricing: Pricing,
  all: number,
): Layout | NoLayout {
  const on = spreading(snapshot, shape);
  const guess = new Guess(snapshot, shape, contextTokens, pricing, on, all);
  const { allowedRungs } = snapshot.input.ask;
  const allowed = (other: Rung): boolean => allowedRungs?.includes(other) ?? true;
  switch (rung) {
    case 'moe': {
      const n = all - 1;
      const experts = least(
        0,
        n,
        (kept) => shape.devices.every((d) => pricing.price(on(all, kept), d) <= free(snapshot, d)),
        () => guess.expertsInRam(),
      );
      if (experts === 0 && allowed('gpu-only'))
        return { kind: 'same', reason: 'all its experts fit the card: that is gpu-only' };
      return on(all, experts ?? n);
    }
    case 'max-ram': {
      const layers = least(
        0,
        all,
        (l) => pricing.price(on(l), RAM) <= free(snapshot, RAM),
        () => guess.layersOnCard(),
      );
      if (layers === 0 && allowed('ram-only'))
        return { kind: 'same', reason: 'all of it fits RAM: that is ram-only' };
      return layers === undefined
        ? {
            kind: 'blocked',
            reason: `${formatBytes(free(snapshot, RAM))} of RAM do not hold what must be there`,
          }
        : on(layers);
    }
    case 'max-gpu': {
      const fewer = least(
        0,
        all,
        (off) => shape.devices.every((d) => pricing.price(on(all - off), d) <= free(snapshot, d)),
        () => guess.layersOffCard(),
      );
      const layers = all - (fewer ?? all);
      if (layers === all && allowed('gpu-only'))
        return { kind: 'same', reason: 'all of it fits the card: that is gpu-only' };
      return layers === 0
        ? { kind: 'blocked', reason: 'the room of the card holds no layer with its cache' }
        : on(layers);
    }
  }
}

/**
 * Where a search over layouts probably ends, by the header's sums alone. What was measured or projected may lie
 * elsewhere: it is looked at, and never believed.
 */
class Guess {
  readonly #snapshot: Snapshot;
  readonly #shape: Shape;
  readonly #contextTokens: number;
  readonly #pricing: Pricing;
  readonly #on: On;
  readonly #all: number;

  constructor(
    snapshot: Snapshot,
    shape: Shape,
    contextTokens: number,
    pricing: Pricing,
    on: On,
    all: number,
  ) {
    this.#snapshot = snapshot;
    this.#shape = shape;
    this.#contextTokens = contextTokens;
    this.#pricing = pricing;
    this.#on = on;
    this.#all = all;
  }

  expertsInRam(): number | undefined {
    const { geometry } = this.#shape.artifact;
    const over = this.#overOnCard();
    if (!geometry || over === undefined) return undefined;
    return firstAtLeast(blockSumsOf(geometry).experts, over);
  }

  layersOffCard(): number | undefined {
    const sums = this.#blocksWithCache();
    const over = this.#overOnCard();
    return sums && over !== undefined ? firstAtLeast(sums, over) : undefined;
  }

  layersOnCard(): number | undefined {
    const sums = this.#blocksWithCache();
    const { geometry } = this.#shape.artifact;
    if (!sums || !geometry) return undefined;
    const over = this.#pricing.price(this.#on(0), RAM) - free(this.#snapshot, RAM) - geometry.outputBytes;
    const whole = sums.at(-1) ?? 0;
    // The last blocks go to the card first: what stays is the sum of those before them.
    const stay = sums.findLastIndex((sum) => sum <= whole - over);
    return stay < 0 ? undefined : this.#all - stay;
  }

  /** What the whole of it on the card lacks there; of several cards nothing is guessed. */
  #overOnCard(): number | undefined {
    const [card] = this.#shape.devices;
    if (card === undefined || this.#shape.devices.length > 1) return undefined;
    return this.#pricing.price(this.#on(this.#all), card) - free(this.#snapshot, card);
  }

  #blocksWithCache(): readonly number[] | undefined {
    const { geometry } = this.#shape.artifact;
    if (!geometry) return undefined;
    const { kvType, slots } = this.#snapshot.input.ask;
    const shape = { contextTokens: this.#contextTokens, slots, kvType, microBatch: DEFAULT_MICRO_BATCH };
    return cacheSumsOf(geometry, shape).withWeights;
  }
}

/** The first place of rising sums that reaches an amount. */
const firstAtLeast = (sums: readonly number[], amount: number): number | undefined =>
  least(0, sums.length - 1, (i) => (sums[i] ?? 0) >= amount);

/** Splits the offloaded blocks over several devices in proportion to the room that they have. */
function spread(snapshot: Snapshot, shape: Shape, layout: Layout): Layout {
  if (!isSplit(shape)) return layout;
  const rooms = shape.devices.map((d) => {
    const room = snapshot.rooms.get(d);
    return Math.max(1, free(snapshot, d) || (room?.limitBytes ?? 0));
  });
  return { ...layout, blocksByDevice: shares(offloadedBlocks(shape, layout), rooms) };
}

/** Pinned bytes were met with the split that they were looked at with. */
const holdsBytes = ({ gpuBytes, ramBytes }: Pins): boolean =>
  gpuBytes !== undefined || ramBytes !== undefined;

const isSplit = ({ devices, artifact }: Shape): boolean =>
  devices.length > 1 && (artifact.geometry?.blocks.length ?? 0) > 0;

/** Pinned layers are taken as they are; pinned bytes are a budget that is honoured or refused. */
function pinnedLayout(
  shape: Shape,
  geometry: Geometry | undefined,
  pricing: Pricing,
  on: On,
  all: number,
): Layout | NoLayout {
  const { gpuLayers, cpuMoeLayers, gpuBytes, ramBytes } = shape.pins ?? {};
  const n = all - 1;
  if (gpuLayers !== undefined && gpuLayers > all)
    return {
      kind: 'never',
      reason: `${gpuLayers} GPU layers are pinned, and the model has ${all}`,
    };
  if (cpuMoeLayers !== undefined && cpuMoeLayers > n)
    return {
      kind: 'never',
      reason: `${cpuMoeLayers} expert layers are pinned to RAM, and the model has ${n}`,
    };
  const within = (layout: Layout): boolean =>
    (gpuBytes === undefined ||
      shape.devices.reduce((sum, d) => sum + pricing.price(layout, d), 0) <= gpuBytes) &&
    (ramBytes === undefined || pricing.price(layout, RAM) <= ramBytes);
  const fixed = gpuLayers !== undefined || cpuMoeLayers !== undefined || shape.rung === 'ram-only';
  const layers = shape.rung === 'ram-only' ? 0 : gpuLayers === undefined || gpuLayers < 0 ? all : gpuLayers;
  const candidates = fixed
    ? [on(layers, cpuMoeLayers ?? 0)]
    : shape.rung === 'moe'
      ? range(0, n).map((kept) => on(all, kept))
      : range(0, all).map((l) => on(ramBytes === undefined ? all - l : l));
  const layout = candidates.find(within);
  if (layout) return layout;
  const budgets = [
    ...(gpuBytes === undefined ? [] : [`${formatBytes(gpuBytes)} on the card`]),
    ...(ramBytes === undefined ? [] : [`${formatBytes(ramBytes)} of RAM`]),
  ].join(' and ');
  const nearest = candidates.at(-1);
  const needs = nearest
    ? [RAM, ...shape.devices]
        .map((d) => `${formatBytes(pricing.price(nearest, d))} of ${d === RAM ? 'RAM' : d}`)
        .join(', ')
    : 'more';
  const what = geometry ? '' : ' (its header could not be read)';
  return { kind: 'never', reason: `${budgets} are pinned, and it takes ${needs}${what}` };
}

const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i);

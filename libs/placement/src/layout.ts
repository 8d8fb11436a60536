import type { Geometry } from '#domain/geometry.js';
import { RAM } from '#domain/ids.js';
import type { Rung } from '#domain/placement-terms.js';
import { formatBytes } from '#domain/units.js';
import type { EvictionField } from './eviction.js';
import type { Shape } from './ladder.js';
import { LayoutSearch, type SearchedRung } from './layout-search.js';
import { free, type Layout, type Pricing, shares } from './layout-terms.js';
import type { Snapshot } from './snapshot.js';
import { isSplit, offloadedBlocks, splitToFit } from './split.js';

export type { Layout, Pricing } from './layout-terms.js';

/** Why a shape has no layout. */
export interface NoLayout {
  /** `same`: it amounts to another rung, at this context and at every smaller one. */
  readonly kind: 'never' | 'same';
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
    if ('reason' in pinned || !isSplit(shape)) return pinned;
    const split = splitToFit(snapshot, shape, pinned, pricing, field);
    return isWithin(shape, split, pricing) ? split : pinned;
  }
  if (rung === 'ram-only') return RAM_ONLY;
  if (rung === 'gpu-only' || rung === '4bit') {
    const layout = { gpuLayers: all, cpuMoeLayers: 0 };
    return isSplit(shape) ? splitToFit(snapshot, shape, layout, pricing, field) : layout;
  }
  const search = new LayoutSearch(snapshot, shape, contextTokens, pricing, field, all);
  return searched(search, rung, snapshot.input.ask.allowedRungs);
}

/** A layout of so many layers, over as many devices as the shape has. */
type On = (gpuLayers: number, cpuMoeLayers?: number) => Layout;

const spreading =
  (snapshot: Snapshot, shape: Shape): On =>
  (gpuLayers, cpuMoeLayers = 0) =>
    spread(snapshot, shape, { gpuLayers, cpuMoeLayers });

const RAM_ONLY: Layout = { gpuLayers: 0, cpuMoeLayers: 0 };

function searched(
  search: LayoutSearch,
  rung: SearchedRung,
  allowedRungs: readonly Rung[] | undefined,
): Layout | NoLayout {
  const { layout, whole } = search.find(rung);
  const other = rung === 'max-ram' ? 'ram-only' : 'gpu-only';
  if (!whole || !(allowedRungs?.includes(other) ?? true)) return layout;
  return { kind: 'same', reason: SAME_AS_WHOLE[rung] };
}

const SAME_AS_WHOLE: Readonly<Record<SearchedRung, string>> = {
  moe: 'all its experts fit the card: that is gpu-only',
  'max-gpu': 'all of it fits the card: that is gpu-only',
  'max-ram': 'all of it fits RAM: that is ram-only',
};

/** Splits the offloaded blocks over several devices in proportion to the room that they have. */
function spread(snapshot: Snapshot, shape: Shape, layout: Layout): Layout {
  if (!isSplit(shape)) return layout;
  const rooms = shape.devices.map((d) => {
    const room = snapshot.rooms.get(d);
    return Math.max(1, free(snapshot, d) || (room?.limitBytes ?? 0));
  });
  return { ...layout, blocksByDevice: shares(offloadedBlocks(shape, layout), rooms) };
}

/** Whether the bytes that are pinned are kept to. */
function isWithin({ pins, devices }: Shape, layout: Layout, pricing: Pricing): boolean {
  const { gpuBytes, ramBytes } = pins ?? {};
  return (
    (gpuBytes === undefined || devices.reduce((sum, d) => sum + pricing.price(layout, d), 0) <= gpuBytes) &&
    (ramBytes === undefined || pricing.price(layout, RAM) <= ramBytes)
  );
}

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
  const fixed = gpuLayers !== undefined || cpuMoeLayers !== undefined || shape.rung === 'ram-only';
  const layers = shape.rung === 'ram-only' ? 0 : gpuLayers === undefined || gpuLayers < 0 ? all : gpuLayers;
  const candidates = fixed
    ? [on(layers, cpuMoeLayers ?? 0)]
    : shape.rung === 'moe'
      ? range(0, n).map((kept) => on(all, kept))
      : range(0, all).map((l) => on(ramBytes === undefined ? all - l : l));
  const layout = candidates.find((one) => isWithin(shape, one, pricing));
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

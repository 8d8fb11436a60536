import type { DeviceId } from '#domain/ids.js';
import type { EvictionCandidate, EvictionSet } from './eviction-candidate.js';
import type { EvictionField } from './eviction.js';
import type { Shape } from './ladder.js';
import {
  evictionFor,
  free,
  least,
  type Layout,
  NOBODY,
  type Pricing,
  roomWithout,
  shares,
} from './layout-terms.js';
import type { Snapshot } from './snapshot.js';

/**
 * The blocks of a plan over several devices. In proportion to their room when that fits; else each device in turn takes
 * as many as it holds, which finds a split of this order whenever there is one. When the room that is there does not do,
 * the split is made for the room that could be had, as few bands as do: of the splits that fit then, the one whose
 * victims are the smallest loss. What fits no more than the limits is split by these: it can wait.
 */
export function splitToFit(
  snapshot: Snapshot,
  shape: Shape,
  layout: Layout,
  pricing: Pricing,
  field: EvictionField,
): Layout {
  const split = new Split(snapshot, shape, layout, pricing);
  const now = split.over(split.rooms(NOBODY));
  if (now) return now;
  const helping = field.helping(shape.devices);
  for (const victims of rising(helping)) {
    const whole = split.over(split.rooms(victims));
    if (whole) return split.cheapest([whole, ...split.eachAlone(victims)], field);
  }
  return split.overLimits();
}

/** The blocks of a plan over devices that have so much each; undefined when no split of their order fits. */
export const splitWithin = (
  snapshot: Snapshot,
  shape: Shape,
  layout: Layout,
  pricing: Pricing,
  rooms: readonly number[],
): Layout | undefined => new Split(snapshot, shape, layout, pricing).over(rooms);

export const isSplit = ({ devices, artifact }: Shape): boolean =>
  devices.length > 1 && (artifact.geometry?.blocks.length ?? 0) > 0;

/** Those of known size from the lowest band up, and at last those of unknown size too. */
function* rising(candidates: readonly EvictionCandidate[]): Iterable<readonly EvictionCandidate[]> {
  const known = candidates.filter((c) => !c.unknownSize);
  const bands = new Set(known.map((c) => c.band));
  for (const band of [...bands].sort((a, b) => a - b)) yield known.filter((c) => c.band <= band);
  if (known.length < candidates.length) yield candidates;
}

class Split {
  readonly #snapshot: Snapshot;
  readonly #devices: readonly DeviceId[];
  readonly #layout: Layout;
  readonly #pricing: Pricing;
  /** Blocks that go to the devices. */
  readonly #blocks: number;

  constructor(snapshot: Snapshot, shape: Shape, layout: Layout, pricing: Pricing) {
    this.#snapshot = snapshot;
    this.#devices = shape.devices;
    this.#layout = layout;
    this.#pricing = pricing;
    this.#blocks = offloadedBlocks(shape, layout);
  }

  /** Room of each device when these went. */
  rooms(victims: readonly EvictionCandidate[]): readonly number[] {
    return this.#devices.map((deviceId) => roomWithout(this.#snapshot, deviceId, victims));
  }

  over(rooms: readonly number[]): Layout | undefined {
    const even = this.#with(shares(this.#blocks, rooms.map(atLeastOne)));
    if (this.#fits(even, rooms)) return even;
    const filled = this.#filled(rooms);
    return filled && this.#fits(filled, rooms) ? filled : undefined;
  }

  /** Splits for which residents of one device alone go. */
  eachAlone(victims: readonly EvictionCandidate[]): readonly Layout[] {
    const now = this.rooms(NOBODY);
    const then = this.rooms(victims);
    return this.#devices.flatMap((_, one) => {
      if (now[one] === then[one]) return [];
      return this.over(now.map((room, i) => (i === one ? (then[i] ?? room) : room))) ?? [];
    });
  }

  /** The first of those whose victims are the smallest loss. */
  cheapest(layouts: readonly Layout[], field: EvictionField): Layout {
    let best: { readonly layout: Layout; readonly set: EvictionSet } | undefined;
    for (const layout of layouts) {
      const set = evictionFor(this.#snapshot, this.#pricing.plan(layout), field);
      if (set && (!best || compareLoss(set.victims, best.set.victims) < 0)) best = { layout, set };
    }
    return best?.layout ?? layouts[0] ?? this.overLimits();
  }

  overLimits(): Layout {
    const limits = this.#devices.map((deviceId) => {
      const room = this.#snapshot.rooms.get(deviceId);
      return Math.max(0, (room?.limitBytes ?? 0) - (room?.encroachmentBytes ?? 0));
    });
    return this.over(limits) ?? this.#with(shares(this.#blocks, limits.map(atLeastOne)));
  }

  #with(blocksByDevice: readonly number[]): Layout {
    return { ...this.#layout, blocksByDevice };
  }

  #fits(layout: Layout, rooms: readonly number[]): boolean {
    return this.#devices.every((deviceId, i) => this.#pricing.price(layout, deviceId) <= (rooms[i] ?? 0));
  }

  /** Each device in turn as full as it goes, and the rest on the last. */
  #filled(rooms: readonly number[]): Layout | undefined {
    const last = this.#devices.length - 1;
    const blocks: number[] = this.#devices.map(() => 0);
    let left = this.#blocks;
    for (let i = 0; i < last; i++) {
      const deviceId = this.#devices[i];
      if (deviceId === undefined) return undefined;
      const withCount = (count: number): Layout =>
        this.#with(blocks.map((n, j) => (j === i ? count : j === last ? left - count : n)));
      const over = least(
        0,
        left,
        (n) => this.#pricing.price(withCount(left - n), deviceId) <= (rooms[i] ?? 0),
      );
      if (over === undefined) return undefined;
      blocks[i] = left - over;
      left = over;
    }
    blocks[last] = left;
    return this.#with(blocks);
  }
}

const atLeastOne = (room: number): number => Math.max(1, room);

export function offloadedBlocks({ artifact }: Shape, { gpuLayers }: Layout): number {
  const blocks = artifact.geometry?.blocks.length ?? 0;
  return Math.max(0, Math.min(blocks, gpuLayers < 0 || gpuLayers > blocks ? blocks : gpuLayers - 1));
}

/** Band by band from the highest: no loss in a lower band outweighs one in a higher. Then the fewer victims. */
function compareLoss(a: readonly EvictionCandidate[], b: readonly EvictionCandidate[]): number {
  const bands = new Set([...a, ...b].map((c) => c.band));
  const lossIn = (set: readonly EvictionCandidate[], band: number): number =>
    set.reduce((sum, c) => sum + (c.band === band ? c.lossSeconds : 0), 0);
  for (const band of [...bands].sort((x, y) => y - x)) {
    const difference = lossIn(a, band) - lossIn(b, band);
    if (Math.abs(difference) > EPSILON) return difference;
  }
  return a.length - b.length;
}

const EPSILON = 1e-9;

/** Devices in the order of the room that could be had by evicting, then of what they have. */
export function mostReachFirst(
  snapshot: Snapshot,
  devices: readonly DeviceId[],
  field: EvictionField,
): readonly DeviceId[] {
  if (devices.length < 2 || field.candidates.length === 0) return devices;
  const reach = new Map(
    devices.map((d) => {
      const room = snapshot.rooms.get(d);
      return [d, room?.roomBytes === undefined ? -1 : free(snapshot, d) + field.on(d).bytes];
    }),
  );
  const sorted = [...devices].sort((a, b) => (reach.get(b) ?? -1) - (reach.get(a) ?? -1));
  return sorted.every((d, i) => d === devices[i]) ? devices : sorted;
}

import { type DeviceId, RAM } from '#domain/ids.js';
import { blockSumsOf, cacheSumsOf } from './block-sums.js';
import type { EvictionField } from './eviction.js';
import { DEFAULT_MICRO_BATCH } from './kv.js';
import type { Shape } from './ladder.js';
import { evictionFor, free, least, type Layout, type Pricing, roomWithout } from './layout-terms.js';
import type { Snapshot } from './snapshot.js';
import { isSplit, splitToFit, splitWithin } from './split.js';

export type SearchedRung = 'moe' | 'max-ram' | 'max-gpu';

/** What a device has for the plan. */
type RoomOf = (deviceId: DeviceId) => number;

/** A layout, and whether all of the model is where its rung would rather have it: then another rung is the same. */
export interface Found {
  readonly layout: Layout;
  readonly whole: boolean;
}

/**
 * Where the layers of a rung that divides a model lie. First by the room that is there. Where that holds nothing of it, the
 * least that the rung can be is planned, and for the room that its victims leave the layers are laid out again: nobody goes
 * for more than that. When no victims make room, it is that least, and whoever holds the room is told with it.
 */
export class LayoutSearch {
  readonly #snapshot: Snapshot;
  readonly #shape: Shape;
  readonly #contextTokens: number;
  readonly #pricing: Pricing;
  readonly #field: EvictionField;
  /** Blocks and the output. */
  readonly #all: number;

  constructor(
    snapshot: Snapshot,
    shape: Shape,
    contextTokens: number,
    pricing: Pricing,
    field: EvictionField,
    all: number,
  ) {
    this.#snapshot = snapshot;
    this.#shape = shape;
    this.#contextTokens = contextTokens;
    this.#pricing = pricing;
    this.#field = field;
    this.#all = all;
  }

  find(rung: SearchedRung): Found {
    const now = this.#within(rung, (deviceId) => free(this.#snapshot, deviceId));
    if (now) return now;
    const split = this.#splitToFit(this.#least(rung));
    const victims = evictionFor(this.#snapshot, this.#pricing.plan(split), this.#field)?.victims;
    const later = victims && this.#within(rung, (d) => roomWithout(this.#snapshot, d, victims));
    return later ?? { layout: split, whole: false };
  }

  /** The least that a rung takes where room is scarce: all experts in RAM, all layers on the cards, or one. */
  #least(rung: SearchedRung): Layout {
    if (rung === 'moe') return on(this.#all, this.#all - 1);
    return on(rung === 'max-ram' ? this.#all : 1);
  }

  #within(rung: SearchedRung, room: RoomOf): Found | undefined {
    switch (rung) {
      case 'moe': {
        const experts = this.#firstHeld(
          this.#all - 1,
          (kept) => on(this.#all, kept),
          room,
          () => this.#expertsInRam(room),
        );
        return experts && { layout: experts.layout, whole: experts.at === 0 };
      }
      case 'max-gpu': {
        const off = this.#firstHeld(
          this.#all - 1,
          (less) => on(this.#all - less),
          room,
          () => this.#layersOffCard(room),
        );
        return off && { layout: off.layout, whole: off.at === 0 };
      }
      case 'max-ram': {
        const layers = least(
          0,
          this.#all,
          (l) => this.#pricing.price(on(l), RAM) <= room(RAM),
          () => this.#layersOnCard(room),
        );
        if (layers === undefined) return undefined;
        return { layout: this.#splitToFit(on(layers)), whole: layers === 0 };
      }
    }
  }

  /** The first of rising layouts that the cards hold. */
  #firstHeld(
    to: number,
    layoutAt: (n: number) => Layout,
    room: RoomOf,
    guess: () => number | undefined,
  ): { readonly at: number; readonly layout: Layout } | undefined {
    const held = (n: number): Layout | undefined => this.#held(layoutAt(n), room);
    const at = least(0, to, (n) => held(n) !== undefined, guess);
    const layout = at === undefined ? undefined : held(at);
    return at === undefined || !layout ? undefined : { at, layout };
  }

  /** The layout, split where there are several cards, when they hold it. */
  #held(layout: Layout, room: RoomOf): Layout | undefined {
    const { devices } = this.#shape;
    if (isSplit(this.#shape))
      return splitWithin(this.#snapshot, this.#shape, layout, this.#pricing, devices.map(room));
    for (const deviceId of devices)
      if (this.#pricing.price(layout, deviceId) > room(deviceId)) return undefined;
    return layout;
  }

  #splitToFit(layout: Layout): Layout {
    return isSplit(this.#shape) && layout.gpuLayers > 0
      ? splitToFit(this.#snapshot, this.#shape, layout, this.#pricing, this.#field)
      : layout;
  }

  // Where a search probably ends, by the header's sums alone. What was measured or projected may lie elsewhere: a guess is
  // looked at, and never believed.

  #expertsInRam(room: RoomOf): number | undefined {
    const { geometry } = this.#shape.artifact;
    const over = this.#overOnCard(room);
    if (!geometry || over === undefined) return undefined;
    return firstAtLeast(blockSumsOf(geometry).experts, over);
  }

  #layersOffCard(room: RoomOf): number | undefined {
    const sums = this.#blocksWithCache();
    const over = this.#overOnCard(room);
    return sums && over !== undefined ? firstAtLeast(sums, over) : undefined;
  }

  #layersOnCard(room: RoomOf): number | undefined {
    const sums = this.#blocksWithCache();
    const { geometry } = this.#shape.artifact;
    if (!sums || !geometry) return undefined;
    const over = this.#pricing.price(on(0), RAM) - room(RAM) - geometry.outputBytes;
    const whole = sums.at(-1) ?? 0;
    // The last blocks go to the card first: what stays is the sum of those before them.
    const stay = sums.findLastIndex((sum) => sum <= whole - over);
    return stay < 0 ? undefined : this.#all - stay;
  }

  /** What the whole of it on the card lacks there; of several cards nothing is guessed. */
  #overOnCard(room: RoomOf): number | undefined {
    const [card] = this.#shape.devices;
    if (card === undefined || this.#shape.devices.length > 1) return undefined;
    return this.#pricing.price(on(this.#all), card) - room(card);
  }

  #blocksWithCache(): readonly number[] | undefined {
    const { geometry } = this.#shape.artifact;
    if (!geometry) return undefined;
    const { kvType, slots } = this.#snapshot.input.ask;
    const shape = { contextTokens: this.#contextTokens, slots, kvType, microBatch: DEFAULT_MICRO_BATCH };
    return cacheSumsOf(geometry, shape).withWeights;
  }
}

const on = (gpuLayers: number, cpuMoeLayers = 0): Layout => ({ gpuLayers, cpuMoeLayers });

/** The first place of rising sums that reaches an amount. */
const firstAtLeast = (sums: readonly number[], amount: number): number | undefined =>
  least(0, sums.length - 1, (i) => (sums[i] ?? 0) >= amount);

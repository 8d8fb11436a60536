import type { CallOutcome, SimCall } from '#placement/simulate/model.js';
import { loadSecondsFrom } from '#placement/simulate/model.js';
import type { Scheduler } from '#placement/simulate/simulate.js';
import type { SimResident, World } from '#placement/simulate/world.js';

/** What a cache policy keeps of each model, and how it values a resident. */
export interface CacheOrder {
  readonly name: string;
  /** The lowest is evicted first. */
  value(resident: SimResident, world: World): number;
  called?(model: number): void;
  evicted?(resident: SimResident, world: World): void;
  ready?(resident: SimResident, world: World): void;
}

export const isServable = (r: SimResident): boolean => !r.leaving && r.phase !== 'gone';

export const residentOf = (world: World, model: number): SimResident | undefined => {
  for (const r of world.residents.values()) if (r.model === model && isServable(r)) return r;
  return undefined;
};

export const bytesOn = (world: World, box: number, bytes: number): SimResident['bytes'] => {
  const device = world.scenario.boxes[box]?.devices[0];
  if (!device) throw new RangeError(`box ${box} has no card`);
  return new Map([[device.deviceId, bytes]]);
};

/** What the box has for a newcomer: residents and ordered loads count, those on their way out do not hold it for others. */
export function roomOf(world: World, box: number): number {
  let room = world.scenario.boxes[box]?.devices[0]?.totalBytes ?? 0;
  for (const r of world.residents.values()) {
    if (r.box !== box) continue;
    // A leaving one's room belongs to the load that it leaves for.
    if (!r.leaving) for (const bytes of r.bytes.values()) room -= bytes;
  }
  return room;
}

export const sizeOf = (r: SimResident): number => [...r.bytes.values()].reduce((a, b) => a + b, 0);

export const diskSeconds = (world: World, model: number): number =>
  loadSecondsFrom(world.scenario.load, 'disk', world.model(model).fileBytes);

/**
 * A cache of models with a regrouped queue: calls to residents are served at once, whatever waits before them; the
 * next load is for the model of the oldest waiting call. Victims by the order's value, idle ones before busy ones; a
 * busy victim takes no new calls and ends those that it has. One load at a time per box.
 */
export class CacheScheduler implements Scheduler {
  readonly #order: CacheOrder;
  readonly #world: World;

  constructor(world: World, order: CacheOrder) {
    this.#world = world;
    this.#order = order;
  }

  arrived(call: SimCall): void {
    this.#order.called?.(call.model);
  }

  ready(resident: SimResident): void {
    this.#order.ready?.(resident, this.#world);
  }

  ended(_outcome: CallOutcome): void {
    // Nothing is kept of it.
  }

  step(world: World): number | undefined {
    for (const call of [...world.waiting]) {
      const resident = residentOf(world, call.model);
      if (resident) world.serve(call, resident);
    }
    for (const call of [...world.waiting]) {
      if (!world.waiting.has(call)) continue;
      const resident = residentOf(world, call.model);
      if (resident) world.serve(call, resident);
      else if (!this.#load(world, call)) break;
    }
    return undefined;
  }

  /** On the box where the least is lost; false when every box that could take it loads. */
  #load(world: World, call: SimCall): boolean {
    const bytes = world.model(call.model).cardBytes;
    let best:
      { readonly box: number; readonly victims: readonly SimResident[]; readonly loss: number } | undefined;
    for (let box = 0; box < world.scenario.boxes.length; box++) {
      if (world.isLoading(box)) continue;
      const victims = this.#victims(world, box, bytes);
      if (!victims) continue;
      const loss = victims.reduce((sum, v) => sum + Math.max(0, this.#order.value(v, world)), 0);
      const free = victims.length === 0 ? 0 : 1;
      const bestFree = best && best.victims.length > 0 ? 1 : 0;
      const better = !best || free < bestFree || (free === bestFree && loss < best.loss);
      if (better) best = { box, victims, loss };
    }
    if (!best) return false;
    for (const victim of best.victims) this.#order.evicted?.(victim, world);
    const resident = world.load({
      box: best.box,
      model: call.model,
      bytes: bytesOn(world, best.box, bytes),
      slots: world.model(call.model).slots,
      victims: best.victims.map((v) => v.id),
    });
    world.serve(call, resident);
    return true;
  }

  #victims(world: World, box: number, bytes: number): readonly SimResident[] | undefined {
    let missing = bytes - roomOf(world, box);
    const victims: SimResident[] = [];
    const candidates = [...world.residents.values()]
      .filter((r) => r.box === box && r.phase === 'ready' && !r.leaving)
      .map((resident) => ({
        resident,
        busy: world.isIdle(resident) ? 0 : 1,
        value: this.#order.value(resident, world),
      }))
      .sort((a, b) => a.busy - b.busy || a.value - b.value || a.resident.id - b.resident.id);
    for (const { resident } of candidates) {
      if (missing <= 0) break;
      victims.push(resident);
      missing -= sizeOf(resident);
    }
    if (missing > 0) return undefined;
    // Those that the later ones made superfluous stay.
    return victims.filter((victim) => {
      if (missing + sizeOf(victim) > 0) return true;
      missing += sizeOf(victim);
      return false;
    });
  }
}

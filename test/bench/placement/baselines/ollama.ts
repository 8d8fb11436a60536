import type { CallOutcome, SimCall } from '#placement/simulate/model.js';
import type { Scheduler } from '#placement/simulate/simulate.js';
import type { SimResident, World } from '#placement/simulate/world.js';
import { bytesOn, roomOf } from './cache-scheduler.js';

export interface OllamaRules {
  /** Idle residents are unloaded after so long; undefined: never. */
  readonly keepAliveSeconds?: number;
  /** Residents per card; undefined: as many as fit. */
  readonly mostPerCard?: number;
  /** A newcomer beside others must fit into this share of what is free. */
  readonly fitShare: number;
  readonly mostPending: number;
}

export const AS_SHIPPED: OllamaRules = {
  keepAliveSeconds: 300,
  mostPerCard: 3,
  fitShare: 0.8,
  mostPending: 512,
};
export const WITHOUT_CLOCK_AND_COUNT: OllamaRules = { fitShare: 0.8, mostPending: 512 };

/**
 * Ollama's scheduler by its rules: one queue in order of arrival whose head holds up all behind it, be it for a load
 * under way, for a victim to become idle, or for room. A call to a resident goes to it when it is the head. The victim
 * is the idle resident with the shortest keep-alive, then the first by name; with none idle the first of all. All
 * keep-alives are equal here, so that the name decides. An empty card takes what fits its size.
 */
export class OllamaScheduler implements Scheduler {
  readonly #rules: OllamaRules;
  readonly #world: World;
  /** In order of arrival. */
  readonly #pending: SimCall[] = [];
  #expiring: SimResident | undefined;

  constructor(world: World, rules: OllamaRules) {
    this.#world = world;
    this.#rules = rules;
  }

  arrived(call: SimCall): void {
    if (this.#pending.length >= this.#rules.mostPending) this.#world.refuse(call, 'queue_full');
    else this.#pending.push(call);
  }

  gone(resident: SimResident): void {
    if (resident === this.#expiring) this.#expiring = undefined;
  }

  ended(_outcome: CallOutcome): void {
    // The keep-alive counts from when the resident was last used, which the world keeps.
  }

  step(world: World): number | undefined {
    const next = this.#expire(world);
    while (this.#pending.length > 0 && !this.#expiring) {
      const dealt = this.#head(world);
      if (dealt === 'done') this.#pending.shift();
      else if (dealt === 'held') break;
    }
    return next;
  }

  /** Unloads what has been idle for its keep-alive. @returns when the next one will have been. */
  #expire(world: World): number | undefined {
    const { keepAliveSeconds } = this.#rules;
    if (keepAliveSeconds === undefined) return undefined;
    let next: number | undefined;
    for (const resident of [...world.residents.values()]) {
      if (resident.phase !== 'ready' || resident.leaving || !world.isIdle(resident)) continue;
      const at = resident.usedMs + keepAliveSeconds * 1000;
      if (at <= world.nowMs) world.evict(resident);
      else next = Math.min(next ?? Infinity, at);
    }
    return next;
  }

  /** The head is dealt with, holds the queue up, or had somebody unloaded and is looked at again once he is gone. */
  #head(world: World): 'done' | 'held' | 'unloads' {
    const [call] = this.#pending;
    if (!call) return 'held';
    const all = [...world.residents.values()].filter((r) => !r.leaving);
    const own = all.find((r) => r.model === call.model);
    if (own) {
      // A load under way holds the queue up until it is ready.
      if (own.phase !== 'ready') return 'held';
      world.serve(call, own);
      return 'done';
    }
    if (all.some((r) => r.phase !== 'ready')) return 'held';
    const cards = world.scenario.boxes.length;
    const { mostPerCard } = this.#rules;
    const bytes = world.model(call.model).cardBytes;
    if (mostPerCard === undefined || all.length < mostPerCard * cards) {
      const box = this.#fitting(world, bytes);
      if (box !== undefined) {
        const { slots } = world.model(call.model);
        world.serve(
          call,
          world.load({ box, model: call.model, bytes: bytesOn(world, box, bytes), slots, victims: [] }),
        );
        return 'done';
      }
    }
    this.#unload(world, all);
    return 'unloads';
  }

  /** The card with most free of those that take it. */
  #fitting(world: World, bytes: number): number | undefined {
    const boxes = world.scenario.boxes.map((box, i) => ({
      i,
      free: roomOf(world, i),
      size: box.devices[0]?.totalBytes ?? 0,
    }));
    return boxes
      .sort((a, b) => b.free - a.free || a.i - b.i)
      .find(({ free, size }) => (free === size ? bytes <= size : bytes <= this.#rules.fitShare * free))?.i;
  }

  #unload(world: World, all: readonly SimResident[]): void {
    const byName = [...all].sort((a, b) =>
      world.model(a.model).modelKey < world.model(b.model).modelKey ? -1 : 1,
    );
    const victim = byName.find((r) => world.isIdle(r)) ?? byName[0];
    if (!victim) throw new Error('a call fits no empty card');
    this.#expiring = victim;
    world.evict(victim);
  }
}

import type { SimCall } from '#placement/simulate/model.js';
import type { Scheduler } from '#placement/simulate/simulate.js';
import type { SimResident, World } from '#placement/simulate/world.js';
import { bytesOn, residentOf, roomOf, sizeOf } from './cache-scheduler.js';

/** Its default for loads of up to a minute: the cache is not turned over faster than this. */
const MIN_CHURN_SECONDS = 600;

/**
 * ModelMesh's rule: least recently used, but a full cache whose oldest entry was used within the last ten minutes takes
 * no newcomer: the call is refused. Loads wait in order; calls join a load of their model.
 */
export class ModelMeshScheduler implements Scheduler {
  step(world: World): number | undefined {
    for (const call of [...world.waiting]) {
      const resident = residentOf(world, call.model);
      if (resident) world.serve(call, resident);
      else this.#admit(world, call);
    }
    return undefined;
  }

  #admit(world: World, call: SimCall): void {
    const { cardBytes, slots } = world.model(call.model);
    let best:
      | { readonly box: number; readonly victims: readonly SimResident[]; readonly oldestMs: number }
      | undefined;
    for (let box = 0; box < world.scenario.boxes.length; box++) {
      const chosen = this.#victims(world, box, cardBytes);
      if (chosen && (!best || chosen.oldestMs < best.oldestMs)) best = { box, ...chosen };
    }
    if (!best) {
      world.refuse(call, 'cache_churn');
      return;
    }
    const bytes = bytesOn(world, best.box, cardBytes);
    const victims = best.victims.map((v) => v.id);
    world.serve(call, world.load({ box: best.box, model: call.model, bytes, slots, victims }));
  }

  #victims(
    world: World,
    box: number,
    bytes: number,
  ): { readonly victims: readonly SimResident[]; readonly oldestMs: number } | undefined {
    let missing = bytes - roomOf(world, box);
    if (missing <= 0) return { victims: [], oldestMs: -Infinity };
    const victims: SimResident[] = [];
    const oldest = [...world.residents.values()]
      .filter((r) => r.box === box && r.phase === 'ready' && !r.leaving)
      .sort((a, b) => a.usedMs - b.usedMs || a.id - b.id);
    for (const resident of oldest) {
      const used = world.isIdle(resident) ? resident.usedMs : world.nowMs;
      if (missing <= 0 || world.nowMs - used < MIN_CHURN_SECONDS * 1000) break;
      victims.push(resident);
      missing -= sizeOf(resident);
    }
    return missing > 0 ? undefined : { victims, oldestMs: victims[0]?.usedMs ?? 0 };
  }
}

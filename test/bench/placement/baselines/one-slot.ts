import type { Scheduler } from '#placement/simulate/simulate.js';
import type { World } from '#placement/simulate/world.js';
import { bytesOn } from './cache-scheduler.js';

/**
 * One model per box at a time, as a swapping proxy does it, with a regrouped queue: all waiting calls of the model that
 * is there go first; when it has become idle, the model of the oldest waiting call takes its place.
 */
export class OneSlotScheduler implements Scheduler {
  step(world: World): number | undefined {
    const boxes = world.scenario.boxes.length;
    for (const call of [...world.waiting]) {
      if (!world.waiting.has(call)) continue;
      const all = [...world.residents.values()].filter((r) => !r.leaving);
      const own = all.find((r) => r.model === call.model);
      if (own) {
        world.serve(call, own);
        continue;
      }
      const { cardBytes, slots } = world.model(call.model);
      for (let box = 0; box < boxes; box++) {
        if ((world.scenario.boxes[box]?.devices[0]?.totalBytes ?? 0) < cardBytes) continue;
        const there = all.find((r) => r.box === box);
        if (there && (there.phase !== 'ready' || !world.isIdle(there))) continue;
        if (there && [...world.waiting].some((c) => c.model === there.model)) continue;
        const order = { box, model: call.model, bytes: bytesOn(world, box, cardBytes), slots };
        world.serve(call, world.load({ ...order, victims: there ? [there.id] : [] }));
        break;
      }
    }
    return undefined;
  }
}

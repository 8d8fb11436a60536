import type { CallOutcome, LoadOutcome, Scenario } from './model.js';
import { World, type WorldListener } from './world.js';

/** A policy: told what happens, and asked for orders after each moment at which something did. */
export interface Scheduler extends WorldListener {
  /** Gives the world orders. @returns when to be asked again at the latest, should nothing happen before. */
  step(world: World): number | undefined;
}

export interface SimulationResult {
  readonly calls: readonly CallOutcome[];
  readonly loads: readonly LoadOutcome[];
}

/**
 * Runs a scenario until every call has ended or been refused. Pure: the same scenario and policy give the same result.
 * @throws when calls wait and nothing is to come, which a sound policy never brings about.
 */
export function simulate(scenario: Scenario, schedulerFor: (world: World) => Scheduler): SimulationResult {
  const world = new World(scenario);
  const scheduler = schedulerFor(world);
  world.listen(scheduler);
  let wakeMs: number | undefined;
  while (world.open > 0) {
    if (!world.advance())
      throw new Error(`${world.open} calls wait at ${world.nowMs} and nothing is to come`);
    const next = scheduler.step(world);
    if (next === undefined || next === wakeMs) continue;
    wakeMs = next;
    world.wakeAt(next);
  }
  return { calls: world.outcomes, loads: world.loads };
}

import type { Scenario } from '#placement/simulate/model.js';
import { programAtOnce, programWithDelay } from '#placement/simulate/caching-program.js';
import { solve } from './bound.js';
import { HARDWARE, type HardwareName, loadModel } from './hardware.js';
import type { Metrics } from './metrics.js';
import type { Policy } from './policies.js';
import { readLoadNoise } from './traces.js';
import { workload, type WorkloadName, type WorkloadOptions } from './workloads.js';

export interface Run {
  readonly workload: WorkloadName;
  readonly hardware: HardwareName;
  readonly seed: number;
  readonly policy: string;
  readonly metrics: Metrics;
  /** Least load seconds when every call is served at once. */
  readonly boundSeconds: number;
  /** Least load seconds when a call may wait as long as an overdue one does before it is next; absent when not asked for. */
  readonly delayedBoundSeconds?: number;
}

/** How long a call may wait in the second bound: `overdueAfterSeconds`. */
export const BOUND_DELAY_SECONDS = 60;

export function scenarioOf(name: WorkloadName, hardware: HardwareName, options: WorkloadOptions): Scenario {
  const { models, calls } = workload(name, options);
  return {
    models,
    calls,
    boxes: HARDWARE[hardware].boxes,
    load: loadModel(readLoadNoise(options.folder), options.seed),
  };
}

/** Every policy on the same calls, sizes and luck. */
export async function runAll(
  name: WorkloadName,
  hardware: HardwareName,
  seed: number,
  policies: readonly Policy[],
  withDelayedBound = true,
): Promise<readonly Run[]> {
  const scenario = scenarioOf(name, hardware, { seed });
  const boundSeconds = await solve(programAtOnce(scenario));
  const delayed = withDelayedBound
    ? { delayedBoundSeconds: await solve(programWithDelay(scenario, BOUND_DELAY_SECONDS)) }
    : {};
  return policies.map((policy) => ({
    workload: name,
    hardware,
    seed,
    policy: policy.name,
    metrics: policy.run(scenario).metrics,
    boundSeconds,
    ...delayed,
  }));
}

import { formatSeconds } from '#domain/units.js';
import type { FailedPlan, WorkerState } from '#domain/worker/state.js';
import { type Contract, engineBuildOf } from '#domain/placement-terms.js';
import type { ModelKey } from '#domain/ids.js';
import { planKey } from '#domain/worker/evolve.js';
import { roomGrew } from './context.js';
import type { Room } from './room.js';

const FIRST_BACK_OFF_SECONDS = 30;
const LONGEST_BACK_OFF_SECONDS = 600;

/** 30 · 2^(n−1) s, at most 600 s. */
export const backOffSeconds = (times: number): number =>
  Math.min(LONGEST_BACK_OFF_SECONDS, FIRST_BACK_OFF_SECONDS * 2 ** Math.max(0, times - 1));

/** A failure that still keeps a plan from being tried. */
export interface Remembered {
  readonly failed: FailedPlan;
  /** The file or the engine is at fault: room and waiting do not help. */
  readonly terminal: 'bad_artifact' | 'incompatible_engine' | undefined;
  readonly secondsLeft: number;
  readonly reason: string;
}

/**
 * Whether a plan failed before and is not to be tried again yet. A bad artifact ends every plan of it, an incompatible
 * engine every plan of it on that engine, until the back-off has passed (a repaired file is found then); other failures
 * end this plan alone, until its back-off has passed or a device has more room than it had.
 */
export function rememberedFailure(
  worker: WorkerState,
  plan: { readonly modelKey: ModelKey; readonly artifact: string; readonly contract: Contract },
  rooms: readonly Room[],
  nowMs: number,
): Remembered | undefined {
  if (worker.failedPlans.size === 0) return undefined;
  const build = `|${engineBuildOf(plan.contract.engine)}`;
  for (const [key, failed] of worker.failedPlans) {
    if (failed.modelKey !== plan.modelKey || failed.artifact !== plan.artifact) continue;
    if (failed.class === 'bad-artifact') {
      const remembered = remember(failed, nowMs, 'bad_artifact');
      if (remembered) return remembered;
    }
    if (failed.class === 'incompatible-engine' && key.endsWith(build)) {
      const remembered = remember(failed, nowMs, 'incompatible_engine');
      if (remembered) return remembered;
    }
  }
  const same = worker.failedPlans.get(planKey(plan));
  if (!same || roomGrew(same.roomBytes, rooms)) return undefined;
  return remember(same, nowMs, undefined);
}

function remember(
  failed: FailedPlan,
  nowMs: number,
  terminal: Remembered['terminal'],
): Remembered | undefined {
  const sinceSeconds = (nowMs - Date.parse(failed.at)) / 1000;
  const secondsLeft = backOffSeconds(failed.times) - sinceSeconds;
  if (secondsLeft <= 0) return undefined;
  const times = failed.times === 1 ? '' : ` (${failed.times} times in a row)`;
  const again = terminal ? '' : `; not tried again for ${formatSeconds(secondsLeft)} unless room is freed`;
  const reason = `failed ${formatSeconds(Math.max(0, sinceSeconds))} ago${times}, ${failed.class}: ${failed.message}${again}`;
  return { failed, terminal, secondsLeft, reason };
}

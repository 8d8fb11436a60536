import type { CallOutcome, LoadOutcome, Scenario } from '#placement/simulate/model.js';
import type { SimulationResult } from '#placement/simulate/simulate.js';

/** What the guards of the queue promise a call that has waited `overdueAfterSeconds`, held against a run. */
export interface OverdueRule {
  /** Loads that were ordered past a call that was overdue and whose model had no place: 0 by the rule. */
  readonly overtakes: number;
  /** Most that any wait exceeded what the rule promises for it: 0 or less by the rule. */
  readonly worstExcessSeconds: number;
}

/**
 * An overdue call is next after those that were overdue before it, and nothing is placed past it. So from the moment
 * at which it is overdue until it is served,
 * 1. no load is ordered but for its own model or one that an earlier call waits for, unless the resident that will serve
 *    it is there or comes: then it waits for a slot, which a load elsewhere does not take, and
 * 2. at every moment one of these loads goes on, or the calls end that are drained for it, or those that hold its
 *    model's slots. Of each there are no more than were ordered. Hence
 *    wait ≤ overdueAfter + n · (longest load + longest call) + (1 + ⌊m ÷ slots⌋) · longest call,
 *    n the loads not yet done when it became overdue and ordered before it was served, m the calls of its model that
 *    began meanwhile.
 */
export function overdueRule(
  scenario: Scenario,
  result: SimulationResult,
  overdueAfterSeconds: number,
): OverdueRule {
  const served = result.calls.filter((c) => c.refused === undefined);
  const longestLoad = Math.max(0, ...result.loads.map((l) => l.endMs - l.startMs));
  const longestCall = Math.max(0, ...served.map((c) => (c.endMs ?? 0) - (c.startMs ?? 0)));
  const byModel = new Map<number, CallOutcome[]>();
  for (const c of served) {
    const list = byModel.get(c.call.model);
    if (list) list.push(c);
    else byModel.set(c.call.model, [c]);
  }
  let overtakes = 0;
  let worst = -Infinity;
  for (const outcome of served) {
    const { call, startMs = call.atMs } = outcome;
    const overdueMs = call.atMs + overdueAfterSeconds * 1000;
    if (startMs <= overdueMs) continue;
    const before = result.loads.filter((l) => l.endMs > overdueMs && l.orderedMs <= startMs);
    const placedMs = Math.min(
      startMs,
      servedByLoadMs(result.loads, outcome),
      ...before.filter((l) => l.model === call.model).map((l) => l.orderedMs),
    );
    overtakes += before.filter(
      (load) =>
        load.orderedMs > overdueMs &&
        load.orderedMs < placedMs &&
        !isWaitedForBefore(byModel.get(load.model) ?? [], load, outcome),
    ).length;
    const began = (byModel.get(call.model) ?? []).filter(
      ({ startMs: at = 0 }) => at >= overdueMs && at < startMs,
    ).length;
    const slots = scenario.models[call.model]?.slots ?? 1;
    const promised =
      overdueAfterSeconds * 1000 +
      before.length * (longestLoad + longestCall) +
      (1 + Math.floor(began / slots)) * longestCall;
    worst = Math.max(worst, (startMs - call.atMs - promised) / 1000);
  }
  return { overtakes, worstExcessSeconds: worst === -Infinity ? 0 : worst };
}

/** When the load was ordered whose resident served a call: the last of its model that was done by then. */
const servedByLoadMs = (loads: readonly LoadOutcome[], { call, startMs = call.atMs }: CallOutcome): number =>
  loads.findLast((l) => l.model === call.model && !l.failed && l.endMs <= startMs)?.orderedMs ?? Infinity;

const isWaitedForBefore = (
  ofModel: readonly CallOutcome[],
  load: LoadOutcome,
  { call }: CallOutcome,
): boolean =>
  ofModel.some(
    ({ call: other, startMs = 0 }) =>
      (other.atMs < call.atMs || (other.atMs === call.atMs && other.index < call.index)) &&
      startMs >= load.orderedMs,
  );

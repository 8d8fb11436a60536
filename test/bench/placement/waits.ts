import type { CallOutcome, LoadOutcome } from '#placement/simulate/model.js';
import type { SimulationResult } from '#placement/simulate/simulate.js';

/** Where the time from arrival to the end of the output goes, mean seconds over the calls that were served. */
export interface Waits {
  /** Until the load that ends before the call begins has begun: for room, or for the disk. */
  readonly untilLoadSeconds: number;
  readonly loadSeconds: number;
  /** For a slot, of a resident that was ready when the call came, or after the load. */
  readonly slotSeconds: number;
  readonly servingSeconds: number;
}

export function waitsOf({ calls, loads }: SimulationResult): Waits {
  const byModel = new Map<number, LoadOutcome[]>();
  for (const load of loads) {
    if (load.failed) continue;
    const list = byModel.get(load.model);
    if (list) list.push(load);
    else byModel.set(load.model, [load]);
  }
  const sum = { untilLoadSeconds: 0, loadSeconds: 0, slotSeconds: 0, servingSeconds: 0 };
  const served = calls.filter((call) => call.refused === undefined);
  for (const { call, startMs = call.atMs, endMs = startMs } of served) {
    const own = firstReadyMeanwhile(byModel.get(call.model) ?? [], call, startMs);
    const beginMs = own ? Math.max(call.atMs, own.startMs) : call.atMs;
    const readyMs = own?.endMs ?? call.atMs;
    sum.untilLoadSeconds += (beginMs - call.atMs) / 1000;
    sum.loadSeconds += (readyMs - beginMs) / 1000;
    sum.slotSeconds += (startMs - readyMs) / 1000;
    sum.servingSeconds += (endMs - startMs) / 1000;
  }
  const n = Math.max(1, served.length);
  return {
    untilLoadSeconds: sum.untilLoadSeconds / n,
    loadSeconds: sum.loadSeconds / n,
    slotSeconds: sum.slotSeconds / n,
    servingSeconds: sum.servingSeconds / n,
  };
}

/** The load of its model that was ready first of those that ended while the call waited. */
function firstReadyMeanwhile(
  loads: readonly LoadOutcome[],
  { atMs }: CallOutcome['call'],
  startMs: number,
): LoadOutcome | undefined {
  let first: LoadOutcome | undefined;
  for (const load of loads)
    if (load.endMs > atMs && load.endMs <= startMs && (!first || load.endMs < first.endMs)) first = load;
  return first;
}

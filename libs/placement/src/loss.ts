import type { CallHistory } from '#domain/calls/call-history.js';
import { median, type PairHistory } from '#domain/history/history.js';
import { classKey, type PlacementClass } from '#domain/placement-terms.js';
import { memo } from './memo.js';

/** H: how far ahead an eviction is regretted. */
export const HORIZON_SECONDS = 600;
const GAPS_NEEDED = 5;

/** What a load takes when none was ever measured: starting, then reading from a disk. */
const START_SECONDS = 2;
const READ_BYTES_PER_SECOND = 1.5e9;

/**
 * λ: expected calls per second given how long the model has been idle. From five gaps on it is the hazard of its gap
 * history over the next H seconds of idleness; beyond the longest gap 1 ÷ idle age; with fewer gaps
 * (calls + ½) ÷ (observed span + H).
 */
export function callRate(calls: CallHistory | undefined, nowMs: number): number {
  const arrivals = calls?.arrivalsMs ?? [];
  const last = arrivals.at(-1);
  if (!calls || last === undefined) return 0.5 / HORIZON_SECONDS;
  const idleSeconds = Math.max(0, (nowMs - last) / 1000);
  const { sorted, sums } = gapsOf(calls);
  const count = sorted.length;
  if (count < GAPS_NEEDED) {
    const spanSeconds = Math.max(0, (nowMs - (calls.firstArrivalMs ?? last)) / 1000);
    return (calls.calls + 0.5) / (spanSeconds + HORIZON_SECONDS);
  }
  // Of the gaps that lasted longer than this idleness: how many ended within H, and how long all of them went on in it.
  const longer = countUpTo(sorted, idleSeconds);
  const beyond = countUpTo(sorted, idleSeconds + HORIZON_SECONDS);
  const ended = beyond - longer;
  const exposureSeconds =
    (sums[beyond] ?? 0) - (sums[longer] ?? 0) - ended * idleSeconds + (count - beyond) * HORIZON_SECONDS;
  if (count > longer && exposureSeconds > 0) return ended / exposureSeconds;
  return 1 / Math.max(idleSeconds, 1);
}

interface Gaps {
  /** Rising. */
  readonly sorted: readonly number[];
  /** Sums of the first n. */
  readonly sums: readonly number[];
}

const gapsOf = memo(({ arrivalsMs }: CallHistory): Gaps => {
  const sorted = arrivalsMs
    .slice(1)
    .map((at, i) => Math.max(0, (at - (arrivalsMs[i] ?? at)) / 1000))
    .sort((a, b) => a - b);
  const sums = [0];
  for (const gap of sorted) sums.push((sums.at(-1) ?? 0) + gap);
  return { sorted, sums };
});

/** How many of the rising values are not above a limit. */
function countUpTo(rising: readonly number[], limit: number): number {
  let low = 0;
  let high = rising.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rising[middle] ?? 0) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Calls, each counting half as much for every H seconds that it lies back. It does what the clock of greedy-dual
 * does for a cache that only ever grows older by its own evictions, and needs no state beside the log.
 */
export function agedCalls(calls: CallHistory | undefined, nowMs: number): number {
  let sum = 0;
  for (const at of calls?.arrivalsMs ?? []) sum += 2 ** -(Math.max(0, nowMs - at) / 1000 / HORIZON_SECONDS);
  return sum;
}

/** min(1, λ·H) · (reload + wait), in seconds. */
export const expectedLoss = (ratePerSecond: number, reloadSeconds: number, waitSeconds: number): number =>
  Math.min(1, ratePerSecond * HORIZON_SECONDS) * (reloadSeconds + waitSeconds);

export interface LoadEstimate {
  readonly seconds: number;
  readonly basis: 'measured' | 'measured other class' | 'estimated';
}

/** Median of measured loads of the class, else of the artifact's other classes, else from its bytes. */
export function loadSeconds(
  history: PairHistory | undefined,
  plan: PlacementClass,
  weightsBytes: number,
): LoadEstimate {
  if (history && history.loadSeconds.size > 0) {
    const own = classMediansOf(history).get(keyOf(plan));
    if (own !== undefined) return { seconds: own, basis: 'measured' };
    const near = artifactMedian(history, plan.artifact);
    if (near !== undefined) return { seconds: near, basis: 'measured other class' };
  }
  return { seconds: START_SECONDS + weightsBytes / READ_BYTES_PER_SECOND, basis: 'estimated' };
}

const keyOf = memo(classKey);

const classMediansOf = memo(({ loadSeconds: byClass }: PairHistory): ReadonlyMap<string, number> => {
  const medians = new Map<string, number>();
  for (const [key, seconds] of byClass) {
    const middle = median(seconds);
    if (middle !== undefined) medians.set(key, middle);
  }
  return medians;
});

const artifactMediansOf = memo((_: PairHistory) => new Map<string, number | undefined>());

/** Median over every class of an artifact. */
function artifactMedian(history: PairHistory, artifact: string): number | undefined {
  const known = artifactMediansOf(history);
  if (known.has(artifact)) return known.get(artifact);
  const all: number[] = [];
  for (const [key, seconds] of history.loadSeconds) {
    if (key.startsWith(`${artifact}|`)) all.push(...seconds);
  }
  const middle = median(all);
  known.set(artifact, middle);
  return middle;
}

/** Mean wait of a model's calls beyond the load; 0 when unknown. */
export const meanWaitSeconds = (calls: CallHistory | undefined): number => (calls ? meanWaitOf(calls) : 0);

const meanWaitOf = memo((calls: CallHistory): number => {
  let sum = 0;
  let known = 0;
  for (const { waitSeconds } of calls.finished) {
    if (waitSeconds === undefined) continue;
    sum += waitSeconds;
    known += 1;
  }
  return known === 0 ? 0 : sum / known;
});

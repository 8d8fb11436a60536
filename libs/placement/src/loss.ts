import type { CallHistory } from '#domain/calls/call-history.js';
import type { PairHistory } from '#domain/history/history.js';
import { type MeasuredLoad, measuredLoad } from '#domain/history/load-seconds.js';
import type { PlacementClass } from '#domain/placement-terms.js';
import { memo } from './memo.js';

/** H: calls so far back count half in the order `gdsf`. */
export const HORIZON_SECONDS = 600;
/** τ: a reload that is needed so much later weighs 1/e of one that is needed at once. */
export const SOON_SECONDS = 240;
/** A gap counts half as much as one that came so many gaps after it. */
export const HALVED_EVERY_GAPS = 16;
/** A gap of unknown length stands beside the known ones: what is left of it is this many times what has passed. */
export const UNKNOWN_REMAINDER = 2;
export const UNKNOWN_SECONDS = 60;
/** A call counts half as much for every so many seconds that it lies back. */
export const RATE_HALVED_EVERY_SECONDS = 3600;
/** Time without calls that is added to what was seen of a model: one call alone makes no high rate. */
export const RATE_PRIOR_SECONDS = 2400;
/** How long a model that was never called is taken to have been idle. */
export const NEVER_CALLED_IDLE_SECONDS = 600;

/** What a load takes when none was ever measured: starting, then reading from a disk. */
const START_SECONDS = 2;
const READ_BYTES_PER_SECOND = 1.5e9;

/**
 * How soon a model is wanted again, from 1 (now) to 0 (never): e^(−T ÷ τ) over the time T until its next call. It is what
 * its gaps say, brought down where its calls of late say less: ∛(gaps · rate²). Gaps know the bursts and the even beat of
 * calls, and believe too much after a burst, since what ended it is not among them; the rate knows that calls became few.
 */
export function soonness(calls: CallHistory | undefined, nowMs: number): number {
  const byGaps = soonnessByGaps(calls, nowMs);
  return Math.min(byGaps, Math.cbrt(byGaps * soonnessByRate(calls, nowMs) ** 2));
}

/**
 * The mean of e^(−T ÷ τ) over what is left, T, of those of its gaps that lasted longer than it has been idle by now. Later
 * gaps count more. One gap of unknown length is counted with them, its remainder exponential with mean 2 · (idle + 60 s):
 * it is all there is beyond the longest gap, and keeps few gaps from being believed too much.
 */
export function soonnessByGaps(calls: CallHistory | undefined, nowMs: number): number {
  const idleSeconds = idleSecondsOf(calls, nowMs);
  let weights = 1;
  let sum = SOON_SECONDS / (SOON_SECONDS + UNKNOWN_REMAINDER * (idleSeconds + UNKNOWN_SECONDS));
  if (calls) {
    const gaps = gapsOf(calls);
    for (let i = 0; i < gaps.length; i += 2) {
      const seconds = gaps[i] ?? 0;
      if (seconds <= idleSeconds) continue;
      const weight = gaps[i + 1] ?? 0;
      weights += weight;
      sum += weight * Math.exp((idleSeconds - seconds) / SOON_SECONDS);
    }
  }
  return sum / weights;
}

/**
 * The mean of e^(−T ÷ τ) when calls come independently, λτ ÷ (1 + λτ): λ the calls of the last hours, later ones counting
 * more, by the time in which they came, that counting likewise, and 2,400 s. Of a model that was never called it says
 * nothing.
 */
export function soonnessByRate(calls: CallHistory | undefined, nowMs: number): number {
  if (calls === undefined || calls.arrivalsMs.length === 0) return 1;
  const { atLast, sinceMs } = agedArrivals(calls);
  const counted = atLast * aged(idleSecondsOf(calls, nowMs));
  const seenSeconds = Math.max(0, (nowMs - sinceMs) / 1000);
  const exposure = (RATE_HALVED_EVERY_SECONDS / Math.LN2) * (1 - aged(seenSeconds));
  const expected = (SOON_SECONDS * counted) / (exposure + RATE_PRIOR_SECONDS);
  return expected / (1 + expected);
}

function idleSecondsOf(calls: CallHistory | undefined, nowMs: number): number {
  const last = calls?.arrivalsMs.at(-1);
  return last === undefined ? NEVER_CALLED_IDLE_SECONDS : Math.max(0, (nowMs - last) / 1000);
}

const aged = (seconds: number): number => 0.5 ** (seconds / RATE_HALVED_EVERY_SECONDS);

/** What the arrivals count together when the last of them comes, and since when they are all that came. */
const agedArrivals = memo(({ arrivalsMs, calls, firstArrivalMs }: CallHistory) => {
  const last = arrivalsMs.at(-1) ?? 0;
  const first = arrivalsMs[0] ?? last;
  return {
    atLast: arrivalsMs.reduce((sum, at) => sum + aged(Math.max(0, last - at) / 1000), 0),
    sinceMs: calls > arrivalsMs.length ? first : Math.min(first, firstArrivalMs ?? first),
  };
});

/**
 * Seconds between calls and the weight of each gap, in their order: numbers side by side, since every decision goes through
 * those of all residents.
 */
const gapsOf = memo(({ arrivalsMs }: CallHistory): Float64Array => {
  const gaps = Math.max(0, arrivalsMs.length - 1);
  return Float64Array.from({ length: 2 * gaps }, (_, i) => {
    const gap = Math.floor(i / 2);
    return i % 2 === 0
      ? Math.max(0, ((arrivalsMs[gap + 1] ?? 0) - (arrivalsMs[gap] ?? 0)) / 1000)
      : 0.5 ** ((gaps - 1 - gap) / HALVED_EVERY_GAPS);
  });
});

/**
 * Calls, each counting half as much for every H seconds that it lies back. It does what the clock of greedy-dual
 * does for a cache that only ever grows older by its own evictions, and needs no state beside the log.
 */
export function agedCalls(calls: CallHistory | undefined, nowMs: number): number {
  let sum = 0;
  for (const at of calls?.arrivalsMs ?? []) sum += 2 ** -(Math.max(0, nowMs - at) / 1000 / HORIZON_SECONDS);
  return sum;
}

/** What a resident loses of that while another of its model is ready elsewhere: calls go on, with fewer slots. */
export const ONE_OF_TWO_SHARE = 0.5;

/** Soonness · (reload + wait), in seconds. */
export const expectedLoss = (soon: number, reloadSeconds: number, waitSeconds: number): number =>
  soon * (reloadSeconds + waitSeconds);

export interface LoadEstimate {
  readonly seconds: number;
  readonly basis: MeasuredLoad['basis'] | 'estimated';
}

/** Median of measured loads of the class, else of the artifact's other classes, else from its bytes. */
export function loadSeconds(
  history: PairHistory | undefined,
  plan: PlacementClass,
  weightsBytes: number,
): LoadEstimate {
  const measured = history && measuredLoad(history, plan);
  if (measured) return measured;
  return { seconds: START_SECONDS + weightsBytes / READ_BYTES_PER_SECOND, basis: 'estimated' };
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

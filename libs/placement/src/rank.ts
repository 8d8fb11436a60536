import { totalSeconds, type Verdict } from './plan.js';
import type { EffectiveSettings } from './settings.js';

export type Admitted = Extract<Verdict, { kind: 'admitted' }>;

/** `quality` looks only at plans that end within so many times the fastest known. */
const QUALITY_SLOWNESS = 3;

type RankSettings = Pick<EffectiveSettings, 'goal' | 'latencyTargetSeconds'>;

/**
 * The admitted plans, best first. T is the predicted time to the end of the output, R the loss of what is displaced, E
 * how many are: quality q, T + R, T; fast T, q, R; resident q, E, T + R. Plans measured above the latency target
 * come after all within it; plans whose T is unknown keep the ladder's order behind the known.
 */
export function rank(admitted: readonly Admitted[], settings: RankSettings): readonly Admitted[] {
  const limit = longestSeconds(admitted, settings);
  return admitted.filter((verdict) => isFastEnough(verdict, limit)).sort((a, b) => compare(a, b, settings));
}

/** The first of that order among all verdicts. */
export function bestOf(verdicts: readonly Verdict[], settings: RankSettings): Admitted | undefined {
  const limit = longestSeconds(verdicts, settings);
  let best: Admitted | undefined;
  for (const verdict of verdicts) {
    if (verdict.kind !== 'admitted' || !isFastEnough(verdict, limit)) continue;
    if (!best || compare(verdict, best, settings) < 0) best = verdict;
  }
  return best;
}

/** `quality` looks at nothing that takes longer. */
function longestSeconds(verdicts: readonly Verdict[], settings: RankSettings): number {
  if (settings.goal !== 'quality') return Infinity;
  let fastest = Infinity;
  for (const verdict of verdicts) {
    if (verdict.kind === 'admitted') fastest = Math.min(fastest, totalSeconds(verdict.forecast) ?? Infinity);
  }
  return QUALITY_SLOWNESS * fastest;
}

const isFastEnough = (verdict: Admitted, longest: number): boolean =>
  (totalSeconds(verdict.forecast) ?? 0) <= longest;

export function lossOf(verdict: Admitted): number {
  let loss = 0;
  for (const { lossSeconds } of verdict.victims) loss += lossSeconds;
  return loss;
}

/** Negative when the first is better; 0 leaves the ladder's order. */
function compare(a: Admitted, b: Admitted, settings: RankSettings): number {
  const ta = totalSeconds(a.forecast);
  const tb = totalSeconds(b.forecast);
  const over = overTarget(a, ta, settings) - overTarget(b, tb, settings);
  if (over !== 0) return over;
  // A plan of unknown T is compared by what is known of it, and stands behind the known of its quality.
  const unknown = (ta === undefined ? 1 : 0) - (tb === undefined ? 1 : 0);
  const q = a.plan.shape.q - b.plan.shape.q;
  // Where it failed before, another device or way is preferred.
  const failed = (a.failedBefore ? 1 : 0) - (b.failedBefore ? 1 : 0);
  switch (settings.goal) {
    case 'quality':
      if (q !== 0 || failed !== 0 || unknown !== 0) return q || failed || unknown;
      return ta === undefined || tb === undefined ? 0 : ta + lossOf(a) - (tb + lossOf(b)) || ta - tb;
    case 'fast':
      if (failed !== 0) return failed;
      if (unknown !== 0 || ta === undefined || tb === undefined) return unknown;
      return ta - tb || q || lossOf(a) - lossOf(b);
    case 'resident': {
      const first = q || failed || a.victims.length - b.victims.length || unknown;
      if (first !== 0 || ta === undefined || tb === undefined) return first;
      return ta + lossOf(a) - (tb + lossOf(b));
    }
  }
}

const overTarget = (
  { forecast }: Admitted,
  seconds: number | undefined,
  { latencyTargetSeconds }: RankSettings,
): number =>
  latencyTargetSeconds !== undefined &&
  seconds !== undefined &&
  !forecast.estimated &&
  seconds > latencyTargetSeconds
    ? 1
    : 0;

import type { Goal } from './settings.js';
import { totalSeconds, type Verdict } from './plan.js';
import type { EffectiveSettings } from './settings.js';

export type Admitted = Extract<Verdict, { kind: 'admitted' }>;

/** `quality` looks only at plans that end within so many times the fastest known. */
const QUALITY_SLOWNESS = 3;

/**
 * The admitted plans, best first. T is the predicted time to the end of the output, R the loss of what is displaced, E
 * how many are: quality q, T + R, T; fast T, q, R; resident q, E, T + R. Plans measured above the latency target
 * come after all within it; plans whose T is unknown keep the ladder's order behind the known.
 */
export function rank(
  admitted: readonly Admitted[],
  settings: Pick<EffectiveSettings, 'goal' | 'latencyTargetSeconds'>,
): readonly Admitted[] {
  const eligible = settings.goal === 'quality' ? fastEnough(admitted) : admitted;
  return eligible
    .map((verdict, place) => ({ verdict, place, key: keyOf(verdict, settings) }))
    .sort((a, b) => compareKeys(a.key, b.key) || a.place - b.place)
    .map(({ verdict }) => verdict);
}

function fastEnough(admitted: readonly Admitted[]): readonly Admitted[] {
  const known = admitted.flatMap((v) => totalSeconds(v.forecast) ?? []);
  if (known.length === 0) return admitted;
  const limit = QUALITY_SLOWNESS * Math.min(...known);
  return admitted.filter((v) => (totalSeconds(v.forecast) ?? 0) <= limit);
}

export const lossOf = (verdict: Admitted): number =>
  verdict.victims.reduce((sum, v) => sum + v.lossSeconds, 0);

function keyOf(
  verdict: Admitted,
  settings: Pick<EffectiveSettings, 'goal' | 'latencyTargetSeconds'>,
): readonly number[] {
  const seconds = totalSeconds(verdict.forecast);
  const { latencyTargetSeconds } = settings;
  const over =
    latencyTargetSeconds !== undefined &&
    seconds !== undefined &&
    !verdict.forecast.estimated &&
    seconds > latencyTargetSeconds;
  const unknown = seconds === undefined ? 1 : 0;
  const t = seconds ?? 0;
  const first = [over ? 1 : 0];
  return [
    ...first,
    ...goalKey(settings.goal, verdict.plan.shape.q, t, lossOf(verdict), verdict.victims.length, unknown),
  ];
}

/** A plan of unknown T has only what is known of it in its key, and stands behind the known of its quality. */
function goalKey(goal: Goal, q: number, t: number, r: number, e: number, unknown: number): readonly number[] {
  switch (goal) {
    case 'quality':
      return unknown ? [q, 1] : [q, 0, t + r, t];
    case 'fast':
      return unknown ? [1] : [0, t, q, r];
    case 'resident':
      return unknown ? [q, e, 1] : [q, e, 0, t + r];
  }
}

function compareKeys(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

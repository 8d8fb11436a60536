import { type Displaced, forecastOf, totalSeconds, type Verdict } from './plan.js';
import { isOverdue, waitedSeconds } from './queue.js';
import { type Admitted, lossOf } from './rank.js';
import type { Snapshot } from './snapshot.js';

type Blocked = Extract<Verdict, { kind: 'blocked' }>;

/** What a call waits for although it could be placed at once. */
export interface Awaited {
  readonly reason: string;
  readonly freeInSeconds: number;
}

/**
 * Whether running calls are expected to free, in time, the room of a plan that is better than the best of now. With
 * `waitBeforeQuality` a better artifact is waited for. The same artifact is waited for where it would lie in another way
 * (on a card, and not in RAM) and its output would be there sooner, the wait included. Other cards for the same rung are
 * not waited for: calls go on coming to who is busy there, and most such waits would be in vain. Nor is anything when the
 * call is overdue.
 */
export function worthWaitingFor(
  snapshot: Snapshot,
  best: Admitted,
  verdicts: readonly Verdict[],
): Awaited | undefined {
  const { settings, ticket, nowMs } = snapshot.input;
  const left = settings.maxWaitSeconds - (ticket ? waitedSeconds(ticket, nowMs) : 0);
  const mayWait = ticket !== undefined && !isOverdue(ticket, nowMs, settings);
  for (const verdict of verdicts) {
    if (verdict.kind !== 'blocked') continue;
    const better = settings.waitBeforeQuality && verdict.shape.q < best.plan.shape.q;
    const maySooner = mayWait && verdict.shape.rung !== best.plan.shape.rung;
    // When a call on it ends is worked out only for a plan that would be sooner if it ended at once.
    if (!better && !(maySooner && isSooner(snapshot, verdict, 0, best, NOBODY_GOES))) continue;
    const { freeInSeconds } = verdict;
    if (freeInSeconds === undefined || freeInSeconds > left) continue;
    const { displaces } = verdict;
    if (!better && !(displaces && isSooner(snapshot, verdict, freeInSeconds, best, displaces))) continue;
    const { artifact, rung } = verdict.shape;
    const what = better ? artifact.label : `${artifact.label} as ${rung}`;
    return { reason: `${what} is waited for: ${verdict.reason}`, freeInSeconds };
  }
  return undefined;
}

const NOBODY_GOES: Displaced = { count: 0, lossSeconds: 0 };

/** Whether a plan that has to wait still comes before the best of now, by the goal's key. */
function isSooner(
  snapshot: Snapshot,
  { plan, shape }: Blocked,
  freeInSeconds: number,
  best: Admitted,
  displaces: Displaced,
): boolean {
  const now = totalSeconds(best.forecast);
  const then = plan && totalSeconds(forecastOf(snapshot, plan, freeInSeconds));
  if (now === undefined || then === undefined) return false;
  const { goal } = snapshot.input.settings;
  if (goal === 'fast') return then < now;
  if (shape.q !== best.plan.shape.q) return false;
  if (goal === 'resident' && displaces.count > best.victims.length) return false;
  return then + displaces.lossSeconds < now + lossOf(best);
}

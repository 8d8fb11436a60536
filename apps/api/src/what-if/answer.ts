import type { WhatIfFigures, WhatIfReport } from '#domain/wire/index.js';
import { changeText, type WhatIfChange, whyNotChanged } from '#placement/what-if/change.js';
import { leastPrograms } from '#placement/what-if/least.js';
import { MORE_SHARES, moreOf, reportOf, WORTH_SHARE } from '#placement/what-if/report.js';
import { reproduce } from '#placement/what-if/reproduce.js';
import { type LoggedCalls, loggedCalls, reallyOf, simulateTime } from '#placement/what-if/run.js';
import type { TimeOfLog } from '#placement/what-if/time-of-log.js';
import { leastLoading } from './least-cost.js';

/** For each of the two bounds. */
const BOUND_SECONDS = 60;

/** Decides and simulates a stretch of the log. Blocks its thread for as long as that takes. */
export async function answer(
  time: TimeOfLog,
  changes: readonly WhatIfChange[],
  bound: boolean,
  onStep: (step: string, fraction: number) => void,
): Promise<WhatIfReport> {
  for (const change of changes) {
    const why = whyNotChanged(time.end.workers, change);
    if (why !== undefined) throw new Error(why);
  }
  const logged = loggedCalls(time);
  const steps = 4 + changes.length;
  onStep('making the decisions again', 0);
  const reproduced = reproduce(time.decisions, time.calls);
  onStep('simulating the time as it was', 1 / steps);
  const base = simulateTime(time, logged, {});
  const simulated = changes.map((change, i) => {
    onStep(`simulating ${changeText(change)}`, (2 + i) / steps);
    return { change, figures: simulateTime(time, logged, change).figures };
  });
  onStep('simulating more memory', (2 + changes.length) / steps);
  simulated.push(...moreMemory(time, logged, base.figures));
  onStep('computing the least loading possible', (3 + changes.length) / steps);
  const programs = leastPrograms(time, logged, base);
  const { delaySeconds } = programs;
  const unknown = { kind: 'not computed', why: 'it was not asked for' } as const;
  const atOnce = bound ? await leastLoading(programs.atOnce, BOUND_SECONDS) : unknown;
  const delayed = bound ? await leastLoading(programs.delayed, BOUND_SECONDS) : unknown;
  const notComputed = [atOnce, delayed].find((least) => least.kind === 'not computed')?.why;
  return reportOf({
    time,
    logged,
    reproduced,
    really: reallyOf(time, logged, base.fleet),
    asItWas: base.figures,
    changes: simulated,
    least: {
      delaySeconds,
      ...(atOnce.kind === 'solved' ? { atOnceSeconds: atOnce.seconds } : {}),
      ...(delayed.kind === 'solved' ? { delayedSeconds: delayed.seconds } : {}),
      ...(notComputed === undefined ? {} : { notComputed }),
    },
  });
}

interface Simulated {
  readonly change: WhatIfChange;
  readonly figures: WhatIfFigures;
}

/** The least of some sizes that would have saved a good part of the loads, else the largest of them. */
function moreMemory(time: TimeOfLog, logged: LoggedCalls, asItWas: WhatIfFigures): readonly Simulated[] {
  let last: Simulated | undefined;
  for (const share of MORE_SHARES) {
    const more = moreOf(time, share);
    if (!more) return [];
    const change = { more };
    last = { change, figures: simulateTime(time, logged, change).figures };
    if (last.figures.loads <= asItWas.loads * (1 - WORTH_SHARE)) break;
  }
  return last ? [last] : [];
}

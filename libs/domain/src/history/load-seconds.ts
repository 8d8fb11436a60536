import { memo } from '../memo.js';
import { classKey, type PlacementClass } from '../placement-terms.js';
import { median, type PairHistory } from './history.js';

export interface MeasuredLoad {
  readonly seconds: number;
  readonly basis: 'measured' | 'measured other class';
}

/** Median of the measured loads of the class, else of all classes of the artifact; undefined when it was never loaded. */
export function measuredLoad(history: PairHistory, plan: PlacementClass): MeasuredLoad | undefined {
  if (history.loadSeconds.size === 0) return undefined;
  const own = classMediansOf(history).get(keyOf(plan));
  if (own !== undefined) return { seconds: own, basis: 'measured' };
  const near = artifactMedian(history, plan.artifact);
  return near === undefined ? undefined : { seconds: near, basis: 'measured other class' };
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

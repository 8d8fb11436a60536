import { memo } from '../memo.js';
import { classKey, type PlacementClass, sameClass } from '../placement-terms.js';
import { median } from '../median.js';
import type { PairHistory } from './history.js';

export interface MeasuredLoad {
  readonly seconds: number;
  readonly basis: 'measured' | 'measured other class';
}

/** Median of the measured loads of the class, else of all classes of the artifact; undefined when it was never loaded. */
export function measuredLoad(history: PairHistory, plan: PlacementClass): MeasuredLoad | undefined {
  if (history.loadSeconds.size === 0) return undefined;
  const own = classMedian(history, plan);
  if (own !== undefined) return { seconds: own, basis: 'measured' };
  const near = artifactMedian(history, plan.artifact);
  return near === undefined ? undefined : { seconds: near, basis: 'measured other class' };
}

function classMedian(history: PairHistory, plan: PlacementClass): number | undefined {
  for (const { key, klass, seconds } of classMediansOf(history)) {
    if (klass ? sameClass(klass, plan) : key === classKey(plan)) return seconds;
  }
  return undefined;
}

interface ClassMedian {
  readonly key: string;
  /** Kept with its last measurement: comparing it is cheaper than making a key for each plan that asks. */
  readonly klass: PlacementClass | undefined;
  readonly seconds: number;
}

const classMediansOf = memo((history: PairHistory): readonly ClassMedian[] => {
  const medians: ClassMedian[] = [];
  for (const [key, list] of history.loadSeconds) {
    const seconds = median(list);
    if (seconds !== undefined) medians.push({ key, klass: history.measured.get(key)?.value.class, seconds });
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

import type { HistoryEventData } from '#domain/events/history-events.js';
import type { Fact, PairHistory } from '#domain/history/history.js';
import { type PlacementClass, sameClass, sameList } from '#domain/placement-terms.js';
import { compareText } from './charges.js';
import { memo } from './memo.js';

export type Measured = Fact<HistoryEventData<'LoadMeasured'>>;
export type Projected = Fact<HistoryEventData<'LoadProjected'>>;

const measuredByArtifact = memo((history: PairHistory) => byArtifact(history.measured));
const projectedByArtifact = memo((history: PairHistory) => byArtifact(history.projected));

function byArtifact<F extends Measured | Projected>(
  facts: ReadonlyMap<string, F>,
): ReadonlyMap<string, readonly F[]> {
  const groups = new Map<string, F[]>();
  for (const fact of facts.values()) {
    const { artifact } = fact.value.class;
    const group = groups.get(artifact);
    if (group) group.push(fact);
    else groups.set(artifact, [fact]);
  }
  return groups;
}

/** Whether anything was measured or projected of an artifact. */
export const hasFactsOf = (history: PairHistory, artifact: string): boolean =>
  (history.measured.size > 0 && measuredByArtifact(history).has(artifact)) ||
  (history.projected.size > 0 && projectedByArtifact(history).has(artifact));

/** The measurement of this very class. */
export const measuredOf = (history: PairHistory, plan: PlacementClass): Measured | undefined =>
  history.measured.size === 0
    ? undefined
    : measuredByArtifact(history)
        .get(plan.artifact)
        ?.find((fact) => sameClass(fact.value.class, plan));

/** The engine's own answer for this very class. */
export const projectedOf = (history: PairHistory, plan: PlacementClass): Projected | undefined =>
  history.projected.size === 0
    ? undefined
    : projectedByArtifact(history)
        .get(plan.artifact)
        ?.find((fact) => sameClass(fact.value.class, plan));

/**
 * The measurement to move from: the class that differs least (same devices, engine, layers, KV type, then the nearest
 * context), the latest of equals.
 */
export function nearestMeasured(history: PairHistory, plan: PlacementClass): Measured | undefined {
  if (history.measured.size === 0) return undefined;
  let best: Measured | undefined;
  let bestScore = Infinity;
  for (const fact of measuredByArtifact(history).get(plan.artifact) ?? []) {
    const score = distance(fact.value.class, plan);
    const later =
      best !== undefined &&
      score === bestScore &&
      (fact.at > best.at || (fact.at === best.at && compareText(fact.eventId, best.eventId) > 0));
    if (score < bestScore || later) {
      best = fact;
      bestScore = score;
    }
  }
  return best;
}

const distance = (other: PlacementClass, plan: PlacementClass): number =>
  (sameList(other.devices, plan.devices) ? 0 : 32) +
  (other.engineBuild === plan.engineBuild ? 0 : 16) +
  (other.gpuLayers === plan.gpuLayers && other.cpuMoeLayers === plan.cpuMoeLayers ? 0 : 8) +
  (other.flashAttention === plan.flashAttention && other.microBatch === plan.microBatch ? 0 : 4) +
  (other.kvType === plan.kvType && other.slots === plan.slots ? 0 : 2) +
  Math.abs(other.contextTokens - plan.contextTokens) / (other.contextTokens + plan.contextTokens + 1);

/** The measurement that was made last, of any class: it tells where the model ran. */
export const lastMeasured = memo(({ measured }: PairHistory): Measured | undefined => {
  let last: Measured | undefined;
  for (const fact of measured.values()) if (!last || !(last.at > fact.at)) last = fact;
  return last;
});

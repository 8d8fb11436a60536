import type { FoundModel } from '#domain/events/catalog-events.js';
import type { DecisionCause, PlacementDecidedData } from '#domain/events/worker-events.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import type { Decider, Proposal } from '../admission/decider.js';
import type { Terms } from '../admission/terms.js';

/** A resident's own place with another context: the same artifact and rung. */
export const withContext = (
  resident: Resident,
  model: FoundModel,
  terms: Terms,
  tokens: number,
  cause: DecisionCause,
): Proposal => ({
  model,
  cause,
  settings: terms.settings,
  ask: {
    ...resident.ask,
    context: { min: tokens, max: tokens },
    artifact: resident.artifact,
    allowedRungs: [resident.rung],
  },
});

/** The context that a resident's artifact was trained for; undefined when it, or that, is not known. */
export const trainedOf = (model: FoundModel | undefined, { artifact }: Resident): number | undefined =>
  model?.artifacts.find(({ label }) => label === artifact)?.geometry?.trainedContextTokens;

/** What would be decided for it, if it can be had with nobody leaving. */
export function planOf(
  decider: Pick<Decider, 'consider'>,
  worker: WorkerState,
  proposal: Proposal,
): PlacementDecidedData | undefined {
  const outcome = decider.consider(worker, proposal);
  return outcome.kind === 'decided' ? outcome.data : undefined;
}

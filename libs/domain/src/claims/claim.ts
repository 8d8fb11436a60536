import type { StreamFold } from '../decider.js';
import type { Recorded } from '../events/envelope.js';
import type { DataOf, ModelEvent } from '../events/index.js';

/** Who loads a model that is cold everywhere. */
export interface ClaimState {
  /** The newest claim: it holds against every other that was folded from before it. */
  readonly last?: DataOf<'LoadClaimed'> & { readonly at: string };
  readonly revision: number;
}

export const initialClaim = (): ClaimState => ({ revision: -1 });

/** Folds one event of `model-<modelKey>`. */
export function evolveClaim(state: ClaimState, recorded: Recorded<ModelEvent>): ClaimState {
  const { event, revision, metadata } = recorded;
  if (revision <= state.revision) return state;
  return { revision, last: { ...event.data, at: metadata.at } };
}

export const claimFold: StreamFold<ClaimState, ModelEvent> = {
  version: 1,
  initial: initialClaim,
  evolve: evolveClaim,
};

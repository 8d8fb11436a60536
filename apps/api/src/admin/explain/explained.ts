import type { DecisionRow } from '../decisions/decisions.repository.js';
import type { CallRow } from '../calls/calls.repository.js';
import type { ResidentRow } from '../residents/residents.repository.js';

/** How a call came to its model. */
export type Situation =
  /** It has no end yet. */
  | 'running'
  /** The decision was taken for it. */
  | 'placed'
  /** It waited for a load that another cause had begun. */
  | 'joined'
  /** The model was resident: no decision was needed. */
  | 'reused'
  /** The decision was to refuse it. */
  | 'refused'
  /** It ended before anything was decided for it. */
  | 'undecided';

export function situationOf(
  call: CallRow,
  decision: DecisionRow | undefined,
  resident: ResidentRow | undefined,
): Situation {
  if (call.outcome === null) return 'running';
  if (!decision) return call.resident_id === null ? 'undecided' : 'reused';
  if (decision.call_id === call.call_id) return decision.admitted ? 'placed' : 'refused';
  const readyBefore = resident?.ready_at != null && resident.ready_at <= call.received_at;
  return readyBefore ? 'reused' : 'joined';
}

/** A predicted figure beside what happened, each with the event it stands in. */
export interface Comparison {
  readonly what: string;
  readonly unit: 'seconds' | 'bytes';
  readonly predicted?: number;
  readonly predictedBy?: string;
  readonly actual?: number;
  readonly actualBy?: string;
}

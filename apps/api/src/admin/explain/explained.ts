import type { Situation } from '#domain/wire/index.js';
import type { DecisionRow } from '../decisions/decisions.repository.js';
import type { CallRow } from '../calls/calls.repository.js';
import type { ResidentRow } from '../residents/residents.repository.js';

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

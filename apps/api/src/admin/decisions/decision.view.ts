import type { PlacementDecidedData, PlacementRefusedData } from '#domain/events/worker-events.js';
import { renderDecision } from '#placement/render.js';
import { present } from '../views/present.js';
import type { DecisionRow, WorkingRow } from './decisions.repository.js';

/** A decision as a list shows it: what was decided, what was predicted, what became of it. */
export function decisionView(row: DecisionRow) {
  return present({
    decisionId: row.decision_id,
    eventId: row.event_id,
    workerId: row.worker_id,
    admitted: row.admitted,
    cause: row.cause,
    callId: row.call_id,
    modelKey: row.model_key,
    artifact: row.artifact,
    rung: row.rung,
    residentId: row.resident_id,
    contextTokens: row.context_tokens,
    slots: row.slots,
    kvType: row.kv_type,
    needBytes: row.need_bytes,
    victims: row.victims,
    state: row.state,
    code: row.code,
    reason: row.reason,
    refusals: row.refusals,
    failureClass: row.failure_class,
    predicted: present({
      readySeconds: row.predicted_ready_seconds,
      loadSeconds: row.predicted_load_seconds,
      outputSeconds: row.predicted_output_seconds,
    }),
    actual: present({ readySeconds: row.actual_ready_seconds, loadSeconds: row.actual_load_seconds }),
    decidedAt: row.decided_at,
    validUntil: row.valid_until,
    endedAt: row.ended_at,
    endedByEvent: row.ended_event_id,
  });
}

export type DecisionView = ReturnType<typeof decisionView>;
export type DecisionEvent = PlacementDecidedData | PlacementRefusedData;

export interface DecisionDetail extends DecisionView {
  /** The event as it stands in the log. */
  readonly working: { readonly stream: string; readonly revision: number; readonly event: DecisionEvent };
  /** The working as `berth explain` prints it. */
  readonly text: string;
}

export function decisionDetail(row: DecisionRow, working: WorkingRow): DecisionDetail {
  const event = working.data as DecisionEvent;
  return {
    ...decisionView(row),
    working: { stream: working.stream, revision: working.revision, event },
    text: renderDecision(event),
  };
}

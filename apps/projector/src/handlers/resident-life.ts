import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import { positionOf, streamId } from './handler.js';

export const newResident = (residentId: string, recorded: Recorded<BerthEvent>): Row<'residents'> => ({
  resident_id: residentId,
  worker_id: streamId(recorded),
  decision_id: null,
  model_key: null,
  artifact: null,
  rung: null,
  kind: null,
  phase: 'planned',
  leaving_reason: null,
  leaving_decision_id: null,
  leaving_started: false,
  eviction_id: null,
  engine_kind: null,
  engine_version: null,
  engine_build: null,
  context_tokens: null,
  slots: null,
  kv_type: null,
  ask: null,
  contract: null,
  arguments: null,
  port: null,
  pid: null,
  cores: null,
  predicted_memory: null,
  measured_memory: null,
  host_anonymous_bytes: null,
  host_resident_bytes: null,
  computes_on: null,
  decided_at: null,
  load_started_at: null,
  load_started_event_id: null,
  staged_at: null,
  loaded_at: null,
  ready_at: null,
  adopted_at: null,
  ended_at: null,
  end_reason: null,
  end_detail: null,
  position: positionOf(recorded),
});

export const notLeaving = {
  leaving_reason: null,
  leaving_decision_id: null,
  leaving_started: false,
} as const;

export type EndReason = 'evicted' | 'crashed' | 'load-failed' | 'found-gone' | 'closed';

/**
 * Ends a resident, once; a second end changes nothing. The decision that made it fails if it was still open, its
 * victims that were not begun on stay, and an eviction of the resident that ran is over too.
 * @returns whether this was its end.
 */
export function endResident(
  views: Views,
  recorded: Recorded<BerthEvent>,
  residentId: string,
  reason: EndReason,
  detail: unknown,
): boolean {
  const resident = views.residents.get(residentId);
  if (!resident || resident.phase === 'ended') return false;
  const at = recorded.metadata.at;
  views.residents.put({ ...resident, phase: 'ended', ended_at: at, end_reason: reason, end_detail: detail });
  if (resident.eviction_id !== null && reason !== 'evicted') {
    const eviction = views.evictions.get(resident.eviction_id);
    if (eviction?.state === 'running') {
      views.evictions.put({
        ...eviction,
        state: 'overtaken',
        ended_at: at,
        message: `The resident ended: ${reason}.`,
      });
    }
  }
  const decision = resident.decision_id === null ? undefined : views.decisions.get(resident.decision_id);
  if (!decision) return true;
  // A decision that was closed names its resident here after it was marked; its victims are let go all the same.
  if (decision.state === 'open') {
    views.decisions.put({
      ...decision,
      state: 'failed',
      failure_class: reason,
      ended_at: at,
      ended_event_id: recorded.id,
    });
  }
  if (resident.phase !== 'ready') letVictimsStay(views, decision);
  return true;
}

/** A plan that comes to nothing gives back the victims that were not begun on. */
function letVictimsStay(views: Views, decision: Row<'decisions'>): void {
  for (const victim of decision.victims) {
    const row = views.residents.get(victim);
    if (row?.leaving_decision_id === decision.decision_id && !row.leaving_started) {
      views.residents.put({ ...row, ...notLeaving });
    }
  }
}

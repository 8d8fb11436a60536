import { type DeviceFigures, present } from '../views/present.js';
import type { ResidentRow } from './residents.repository.js';

/** A resident as the management API shows it. Unknown fields are left out. */
export function residentView(row: ResidentRow) {
  const measured = row.measured_memory as DeviceFigures | null;
  const planned = (row.predicted_memory as DeviceFigures | null) ?? [];
  const memory = (measured ?? planned).map((figure) => ({
    ...figure,
    basis: measured ? ('measured' as const) : ('planned' as const),
  }));
  return present({
    residentId: row.resident_id,
    workerId: row.worker_id,
    workerName: row.worker_name,
    modelKey: row.model_key,
    artifact: row.artifact,
    rung: row.rung,
    kind: row.kind,
    phase: row.phase,
    leaving: row.leaving_reason
      ? present({
          reason: row.leaving_reason,
          decisionId: row.leaving_decision_id,
          started: row.leaving_started,
        })
      : null,
    engine: row.engine_kind
      ? present({ kind: row.engine_kind, version: row.engine_version, build: row.engine_build })
      : null,
    contextTokens: row.context_tokens,
    slots: row.slots,
    kvType: row.kv_type,
    memory,
    hostAnonymousBytes: row.host_anonymous_bytes,
    hostResidentBytes: row.host_resident_bytes,
    computesOn: row.computes_on,
    cores: row.cores,
    port: row.port,
    pid: row.pid,
    decisionId: row.decision_id,
    decidedAt: row.decided_at,
    loadStartedAt: row.load_started_at,
    readyAt: row.ready_at,
    lastCallAt: row.last_call_at,
    endedAt: row.ended_at,
    endReason: row.end_reason,
    endDetail: row.end_detail,
  });
}

export type ResidentView = ReturnType<typeof residentView>;

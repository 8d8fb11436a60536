import { present } from '../views/present.js';
import type { EvictionRow } from './evictions.repository.js';

export function evictionView(row: EvictionRow) {
  return present({
    evictionId: row.eviction_id,
    residentId: row.resident_id,
    workerId: row.worker_id,
    decisionId: row.decision_id,
    modelKey: row.model_key,
    reason: row.reason,
    state: row.state,
    freed: row.freed,
    freedBytes: row.freed_bytes,
    seconds: row.seconds,
    failure: row.failure,
    message: row.message,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  });
}

export type EvictionView = ReturnType<typeof evictionView>;

import { present } from '../views/present.js';
import type { AccuracyRow } from './accuracy.repository.js';

/** How well the sizes of one class of a pair were predicted; errors are parts of what was measured. */
export function accuracyView(row: AccuracyRow) {
  return present({
    workerId: row.worker_id,
    modelKey: row.model_key,
    artifact: row.artifact,
    classKey: row.class_key,
    engineBuild: row.engine_build,
    loads: row.loads,
    meanError: row.error_millionths / row.loads / 1e6,
    worstError: row.worst_millionths / 1e6,
    mostAboveBytes: row.most_above_bytes,
    mostBelowBytes: row.most_below_bytes,
    lastAt: row.last_at,
  });
}

export type AccuracyView = ReturnType<typeof accuracyView>;

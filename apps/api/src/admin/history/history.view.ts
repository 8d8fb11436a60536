import { present } from '../views/present.js';
import type { LoadRow, ServingRow } from './history.repository.js';

/** One load, projection, probe or refusal of a pair: measured beside predicted. */
export function loadView(row: LoadRow) {
  return present({
    eventId: row.event_id,
    at: row.at,
    kind: row.kind,
    artifact: row.artifact,
    class: row.class,
    contextTokens: row.context_tokens,
    slots: row.slots,
    kvType: row.kv_type,
    engineBuild: row.engine_build,
    residentId: row.resident_id,
    callId: row.call_id,
    byDevice: row.by_device,
    measuredBytes: row.measured_bytes,
    predictedByDevice: row.predicted_by_device,
    predictedBytes: row.predicted_bytes,
    hostAnonymousBytes: row.host_anonymous_bytes,
    hostResidentBytes: row.host_resident_bytes,
    seconds: row.seconds,
    source: row.source,
    ok: row.ok,
    failure: row.failure,
    message: row.message,
    room: row.room,
    limits: row.limits,
  });
}

export function servingView(row: ServingRow) {
  return present({
    eventId: row.event_id,
    at: row.at,
    callId: row.call_id,
    artifact: row.artifact,
    tokensHeld: row.tokens_held,
    kvBytes: row.kv_bytes,
    peakByDevice: row.peak_by_device,
    promptMsPerToken: row.prompt_ms_per_token,
    decodeMsPerToken: row.decode_ms_per_token,
  });
}

export type LoadView = ReturnType<typeof loadView>;
export type ServingView = ReturnType<typeof servingView>;

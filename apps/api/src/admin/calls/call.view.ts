import { decodeMsPerToken } from '#domain/calls/call-history.js';
import { present } from '../views/present.js';
import type { CallRow } from './calls.repository.js';

const between = (from: string | null, to: string | null): number | undefined =>
  from === null || to === null ? undefined : (Date.parse(to) - Date.parse(from)) / 1000;

/** A call as the management API shows it: counts, sizes and stamps, never a word of it. */
export function callView(row: CallRow) {
  const decodeMs = decodeMsPerToken(row.output_tokens ?? undefined, row.decode_ms ?? undefined);
  return present({
    callId: row.call_id,
    modelKey: row.model_key,
    workerId: row.worker_id,
    apiId: row.api_id,
    endpoint: row.endpoint,
    receivedAt: row.received_at,
    state: row.outcome ?? ('running' as const),
    status: row.status,
    code: row.code,
    stream: row.stream,
    background: row.background,
    intent: row.intent,
    keyId: row.key_id,
    group: row.group_digest,
    residentId: row.resident_id,
    decisionId: row.decision_id,
    artifact: row.artifact,
    attempts: row.attempts,
    promptBytes: row.prompt_bytes,
    maxTokens: row.max_tokens,
    bytesOut: row.bytes_out,
    tokens: present({
      prompt: row.prompt_tokens,
      cached: row.cached_tokens,
      output: row.output_tokens,
      reasoning: row.reasoning_tokens,
    }),
    timings: present({
      promptMs: row.prompt_ms,
      decodeMs: row.decode_ms,
      cpuMs: row.cpu_ms,
      tokensPerSecond: decodeMs === undefined ? undefined : 1000 / decodeMs,
      waitedSeconds: between(row.received_at, row.forwarded_at),
      firstByteSeconds: between(row.received_at, row.first_byte_at),
      totalSeconds: between(row.received_at, row.finished_at),
    }),
    stamps: present({
      receivedAt: row.received_at,
      queuedAt: row.queued_at,
      decidedAt: row.decided_at,
      readyAt: row.ready_at,
      forwardedAt: row.forwarded_at,
      firstByteAt: row.first_byte_at,
      finishedAt: row.finished_at,
    }),
    queue: row.queue,
  });
}

export type CallView = ReturnType<typeof callView>;

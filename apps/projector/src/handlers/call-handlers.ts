import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import { type Handler, type Handlers, positionOf, type RecordedOf } from './handler.js';
import { putCall, wantUsage } from './usage.js';

type CallRecorded = RecordedOf<'CallStarted'> | RecordedOf<'CallFinished'>;

/** Names the hours and days that it may be counted in too: under the key that it names, and under none while that is unknown. */
const touches = (views: Views, { event }: CallRecorded): void => {
  const { callId, modelKey } = event.data;
  views.calls.want(callId);
  const receivedAt = event.type === 'CallStarted' ? event.data.receivedAt : event.data.stamps.receivedAt;
  wantUsage(views, receivedAt, modelKey, '');
  if (event.type === 'CallStarted' && event.data.keyId !== undefined)
    wantUsage(views, receivedAt, modelKey, event.data.keyId);
};

const newCall = (recorded: CallRecorded, receivedAt: string): Row<'calls'> => ({
  call_id: recorded.event.data.callId,
  api_id: recorded.event.data.apiId,
  model_key: recorded.event.data.modelKey,
  worker_id: null,
  endpoint: null,
  key_id: null,
  group_digest: null,
  intent: null,
  background: null,
  stream: null,
  prompt_bytes: null,
  max_tokens: null,
  ask_digest: null,
  outcome: null,
  status: null,
  code: null,
  resident_id: null,
  decision_id: null,
  artifact: null,
  attempts: null,
  received_at: receivedAt,
  queued_at: null,
  decided_at: null,
  ready_at: null,
  forwarded_at: null,
  first_byte_at: null,
  finished_at: null,
  queue: null,
  prompt_tokens: null,
  cached_tokens: null,
  output_tokens: null,
  reasoning_tokens: null,
  prompt_ms: null,
  decode_ms: null,
  cpu_ms: null,
  bytes_out: null,
  request_digest: null,
  response_digest: null,
  started_event_id: null,
  finished_event_id: null,
  position: positionOf(recorded),
});

/** An end may stand before its start: call events are spooled, and a lost api's calls are ended by another. */
const started: Handler<'CallStarted'> = {
  repeatable: true,
  touches,
  apply: (views, recorded) => {
    const data = recorded.event.data;
    const row = views.calls.get(data.callId) ?? newCall(recorded, data.receivedAt);
    if (row.started_event_id !== null) return;
    putCall(views, {
      ...row,
      // The start knows best what it began.
      model_key: data.modelKey,
      received_at: data.receivedAt,
      worker_id: row.worker_id ?? data.workerId ?? null,
      endpoint: data.endpoint,
      key_id: data.keyId ?? null,
      group_digest: data.group ?? null,
      intent: data.intent ?? null,
      background: data.background,
      stream: data.stream,
      prompt_bytes: data.promptBytes,
      max_tokens: data.maxTokens ?? null,
      ask_digest: data.askDigest ?? null,
      started_event_id: recorded.id,
    });
  },
};

const finished: Handler<'CallFinished'> = {
  repeatable: true,
  touches,
  apply: (views, recorded) => {
    const data = recorded.event.data;
    const { stamps, tokens, timings } = data;
    const row = views.calls.get(data.callId) ?? newCall(recorded, stamps.receivedAt);
    if (row.finished_event_id !== null) return;
    putCall(views, {
      ...row,
      worker_id: data.workerId ?? row.worker_id,
      outcome: data.outcome,
      status: data.status,
      code: data.code ?? null,
      resident_id: data.residentId ?? null,
      decision_id: data.decisionId ?? null,
      artifact: data.artifact ?? null,
      attempts: data.attempts,
      queued_at: stamps.queuedAt ?? null,
      decided_at: stamps.decidedAt ?? null,
      ready_at: stamps.readyAt ?? null,
      forwarded_at: stamps.forwardedAt ?? null,
      first_byte_at: stamps.firstByteAt ?? null,
      finished_at: stamps.finishedAt,
      queue: data.queue ?? null,
      prompt_tokens: tokens.prompt ?? null,
      cached_tokens: tokens.cached ?? null,
      output_tokens: tokens.output ?? null,
      reasoning_tokens: tokens.reasoning ?? null,
      prompt_ms: timings.promptMs ?? null,
      decode_ms: timings.decodeMs ?? null,
      cpu_ms: data.cpuMs ?? null,
      bytes_out: data.bytesOut,
      request_digest: data.requestDigest ?? null,
      response_digest: data.responseDigest ?? null,
      finished_event_id: recorded.id,
    });
  },
};

export const callHandlers = { CallStarted: started, CallFinished: finished } satisfies Handlers;

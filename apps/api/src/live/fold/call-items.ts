import { decodeMsPerToken } from '#domain/calls/call-history.js';
import type { CallEvent } from '#domain/events/call-events.js';
import type { CallItem } from '#domain/wire/index.js';
import { present } from '../../admin/views/present.js';

const between = (from: string | undefined, to: string | undefined): number | undefined =>
  from === undefined || to === undefined ? undefined : (Date.parse(to) - Date.parse(from)) / 1000;

/** @returns the call after the event; undefined when it changes nothing: a start or an end that was seen already. */
export function callAfter(known: CallItem | undefined, event: CallEvent): CallItem | undefined {
  if (event.type === 'CallFinished')
    return known && known.state !== 'running' ? undefined : ended(known, event);
  // An end may come before its start, which is spooled apart from it.
  if (known && (known.state === 'running' || known.endpoint !== undefined)) return undefined;
  const { data } = event;
  return {
    tokens: {},
    timings: {},
    state: 'running',
    ...known,
    ...present({
      callId: data.callId,
      modelKey: data.modelKey,
      workerId: known?.workerId ?? data.workerId,
      apiId: known?.apiId ?? data.apiId,
      endpoint: data.endpoint,
      receivedAt: data.receivedAt,
      stream: data.stream,
      background: data.background,
      intent: data.intent,
      keyId: data.keyId,
      group: data.group,
      promptBytes: data.promptBytes,
      maxTokens: data.maxTokens,
    }),
    ...(known ? { timings: { ...known.timings, ...spans(data.receivedAt, known.stamps) } } : {}),
    stamps: { ...known?.stamps, receivedAt: data.receivedAt },
  };
}

const spans = (receivedAt: string, stamps: CallItem['stamps']) =>
  present({
    waitedSeconds: between(receivedAt, stamps.forwardedAt),
    firstByteSeconds: between(receivedAt, stamps.firstByteAt),
    totalSeconds: between(receivedAt, stamps.finishedAt),
  });

function ended(
  known: CallItem | undefined,
  { data }: Extract<CallEvent, { type: 'CallFinished' }>,
): CallItem {
  const { stamps, tokens, timings } = data;
  const decodeMs = decodeMsPerToken(tokens.output, timings.decodeMs);
  const receivedAt = known?.receivedAt ?? stamps.receivedAt;
  return {
    modelKey: data.modelKey,
    ...known,
    ...present({
      callId: data.callId,
      workerId: data.workerId ?? known?.workerId,
      apiId: known?.apiId ?? data.apiId,
      receivedAt,
      state: data.outcome,
      status: data.status,
      code: data.code,
      residentId: data.residentId,
      decisionId: data.decisionId,
      artifact: data.artifact,
      attempts: data.attempts,
      bytesOut: data.bytesOut,
      queue: data.queue,
    }),
    tokens: present({ ...tokens }),
    timings: {
      ...present({
        promptMs: timings.promptMs,
        decodeMs: timings.decodeMs,
        cpuMs: data.cpuMs,
        tokensPerSecond: decodeMs === undefined ? undefined : 1000 / decodeMs,
      }),
      ...spans(receivedAt, stamps),
    },
    stamps: present({ ...stamps, receivedAt }),
  };
}

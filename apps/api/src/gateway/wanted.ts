import { BYTES_PER_TOKEN } from '#domain/calls/call-history.js';
import type { CallId } from '#domain/ids.js';
import type { Writable } from '#domain/writable.js';
import type { Wanted } from '../admission/port.js';
import type { CallBody } from './call-body.js';
import type { Resolved } from './resolve.js';

/** Estimate: no engine says before it has read the picture. */
const TOKENS_PER_PICTURE = 1000;
const BACKGROUND = new Set(['grading', 'smoke-test', 'benchmark', 'warmup', 'background']);

/** Calls of machines for machines: they wait for those that somebody waits for. */
export const isBackground = ({ intent }: Pick<CallBody, 'intent'>): boolean =>
  intent !== undefined && BACKGROUND.has(intent);

/** What admission must know of a call. */
export function wantedOf(
  body: CallBody,
  resolved: Resolved,
  call: {
    readonly callId: CallId;
    readonly receivedAtMs: number;
    readonly group: string | undefined;
    readonly bytesPerToken: number | undefined;
  },
): Wanted {
  const { model, ask, settings, options } = resolved;
  const wanted: Writable<Wanted> = {
    callId: call.callId,
    model,
    ask,
    settings,
    options,
    background: isBackground(body),
    promptTokens:
      Math.ceil(body.promptBytes / (call.bytesPerToken ?? BYTES_PER_TOKEN)) +
      body.pictures * TOKENS_PER_PICTURE,
    receivedAtMs: call.receivedAtMs,
  };
  if (resolved.worker !== undefined) wanted.worker = resolved.worker;
  if (call.group !== undefined) wanted.group = call.group;
  if (body.maxTokens !== undefined) wanted.maxTokens = body.maxTokens;
  return wanted;
}

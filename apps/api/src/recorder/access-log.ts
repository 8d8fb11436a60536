import type { CallEventData } from '#domain/events/call-events.js';
import type { Logger } from '#runtime/logger.js';

/** One line for each call that has ended: what came of it, never what was said. */
export function logCall(logger: Logger, endpoint: string, data: CallEventData<'CallFinished'>): void {
  if (!logger.isLevelEnabled('info')) return;
  const { callId, modelKey, outcome, status, code, workerId, attempts, stamps, tokens, bytesOut } = data;
  const receivedAtMs = Date.parse(stamps.receivedAt);
  const since = (at: string | undefined) => (at === undefined ? undefined : Date.parse(at) - receivedAtMs);
  logger.info(
    {
      call: callId,
      endpoint,
      model: modelKey,
      worker: workerId,
      outcome,
      status,
      code,
      attempts,
      tokens,
      bytesOut,
      firstByteMs: since(stamps.firstByteAt),
      totalMs: since(stamps.finishedAt),
    },
    'call',
  );
}

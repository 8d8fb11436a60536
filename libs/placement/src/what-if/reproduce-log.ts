import type { CallEvent } from '#domain/events/call-events.js';
import type { Recorded } from '#domain/events/envelope.js';
import type { BerthEvent } from '#domain/events/index.js';
import { FoldedLog } from './folded-log.js';
import { captureDecision, type CapturedDecision, reproduce, type Reproduced } from './reproduce.js';
import { SeenCalls } from './seen-calls.js';

/** Makes every decision of a log again. Events in the log's order, from its beginning. */
export function reproduceLog(events: Iterable<Recorded<BerthEvent>>): Reproduced {
  const log = new FoldedLog();
  const calls = new SeenCalls();
  const captured: CapturedDecision[] = [];
  for (const recorded of events) {
    if (recorded.stream.startsWith('calls-')) {
      calls.add(recorded.event as CallEvent);
      continue;
    }
    const decision = captureDecision(log, recorded);
    if (decision) captured.push(decision);
    log.fold(recorded);
  }
  return reproduce(captured, calls);
}

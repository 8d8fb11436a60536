import { FactsDerivation, type FactsReport } from '#domain/facts/derived-facts.js';
import type { LogPosition } from '#domain/events/index.js';
import type { EventLog } from '#events/event-log.js';
import { endOf } from './live-checkpoint.js';

const SAY_EVERY_EVENTS = 2000;

/** Derives the facts from the whole log, up to where it ends now. Nothing is written. */
export async function deriveFacts(
  log: EventLog,
  onProgress: (events: number, position: LogPosition, end: LogPosition) => void,
): Promise<FactsReport> {
  const derivation = new FactsDerivation();
  const end = await endOf(log);
  let events = 0;
  await new Promise<void>((resolve, reject) => {
    const subscription = log.subscribeAll(['worker-', 'history-', 'calls-'], {
      onEvent: (recorded) => {
        if (recorded.position.commit > end.commit) return;
        derivation.take(recorded);
        events += 1;
        if (events % SAY_EVERY_EVENTS === 0) onProgress(SAY_EVERY_EVENTS, recorded.position, end);
      },
      onCaughtUp: () => {
        subscription.stop().then(resolve, reject);
      },
    });
    subscription.ended.catch(reject);
  });
  return derivation.finish();
}

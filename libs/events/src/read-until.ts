import type { BerthEvent, LogPosition, Recorded } from '#domain/events/index.js';
import type { EventLog } from './event-log.js';

/**
 * Reads streams together, in the order of the log, up to its end.
 * @param take false: no more is wanted; what it throws ends the reading
 * @throws when the log ends the reading before its end
 */
export async function readUntil(
  log: Pick<EventLog, 'subscribeAll'>,
  prefixes: readonly string[],
  after: LogPosition | undefined,
  take: (recorded: Recorded<BerthEvent>) => boolean,
): Promise<void> {
  let settle: (error?: Error) => void = () => undefined;
  const read = new Promise<void>((resolve, reject) => {
    settle = (error) => (error ? reject(error) : resolve());
  });
  let over = false;
  const subscription = log.subscribeAll(
    prefixes,
    {
      onEvent: (recorded) => {
        if (over) return;
        try {
          if (take(recorded)) return;
          over = true;
          settle();
        } catch (error) {
          over = true;
          settle(error instanceof Error ? error : new Error(String(error)));
        }
      },
      onCaughtUp: () => settle(),
    },
    { ...(after ? { after } : {}), once: true },
  );
  const stopped = subscription.ended.then(() => {
    const what = prefixes.length > 0 ? prefixes.join(', ') : 'the whole log';
    throw new Error(`The reading of ${what} was stopped before its end.`);
  });
  try {
    await Promise.race([read, stopped]);
  } finally {
    await subscription.stop();
  }
}

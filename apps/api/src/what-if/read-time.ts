import type { LogPosition } from '#domain/events/index.js';
import type { EventLog } from '#events/event-log.js';
import { readUntil } from '#events/read-until.js';
import { type TimeOfLog, TimeOfLogBuilder } from '#placement/what-if/time-of-log.js';

/** More calls than that in one time take gigabytes. */
const MOST_CALLS = 200_000;
/** Writers' clocks differ, and facts are written late: so much after the end is still looked at. */
const LATE_MS = 600_000;
/** Calls so long before the time are read too: decisions look at the last ones of each model. */
const CALLS_BEFORE_MS = 24 * 3_600_000;
/** Progress is told every so many events. */
const TELL_EVERY = 5000;

/** Reads a stretch of the log, with what went before it. @throws when there are too many calls in it. */
export async function readTime(
  log: EventLog,
  fromMs: number,
  toMs: number,
  onRead: (events: number) => void,
): Promise<TimeOfLog> {
  const builder = new TimeOfLogBuilder(fromMs, toMs);
  let events = 0;
  const count = (): void => {
    events += 1;
    if (events % TELL_EVERY === 0) onRead(events);
  };
  let callsAfter: LogPosition | undefined;
  await readUntil(log, ['worker-', 'catalog-', 'history-', 'settings-'], undefined, (recorded) => {
    const atMs = Date.parse(recorded.metadata.at);
    if (atMs < fromMs - CALLS_BEFORE_MS) callsAfter = recorded.position;
    builder.add(recorded);
    count();
    return atMs < toMs + LATE_MS;
  });
  await readUntil(log, ['calls-'], callsAfter, (recorded) => {
    const { event } = recorded;
    const started = event.type === 'CallStarted' ? Date.parse(event.data.receivedAt) : 0;
    if (started < toMs) builder.add(recorded);
    count();
    if (builder.calls > MOST_CALLS)
      throw new Error(
        `More than ${MOST_CALLS.toLocaleString('en')} calls lie in this time; choose a shorter one.`,
      );
    return started < toMs + LATE_MS;
  });
  return builder.finish();
}

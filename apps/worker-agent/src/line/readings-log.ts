import type { ReadingsEvent } from '#domain/events/index.js';
import type { WorkerId } from '#domain/ids.js';
import type { EventLog, NewEvent } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { newId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';

const KEPT_SECONDS = 3600;
const BATCH_MS = 5000;
/** So many wait while the log is away; older ones are dropped, since they are for looking at and no facts. */
const MOST_WAITING = 120;

type Reading = ReadingsEvent['data'];

/** Appends readings to `readings-<worker>` in batches; the stream forgets them after an hour. */
export class ReadingsLog {
  private waiting: NewEvent<ReadingsEvent>[] = [];
  private readonly timer: NodeJS.Timeout;
  private appending: Promise<void> = Promise.resolve();
  private bounded = false;

  constructor(
    private readonly log: EventLog,
    private readonly workerId: WorkerId,
    private readonly logger: Pick<Logger, 'warn'>,
    batchMs = BATCH_MS,
  ) {
    this.timer = setInterval(() => void this.flush(), batchMs).unref();
  }

  add(data: Reading): void {
    const id = newId();
    const cause = { correlationId: id, causationId: id };
    this.waiting.push({ id, event: { type: 'DevicesRead', data }, cause, at: data.takenAt });
    if (this.waiting.length > MOST_WAITING) this.waiting.splice(0, this.waiting.length - MOST_WAITING);
  }

  flush(): Promise<void> {
    this.appending = this.appending.then(async () => {
      if (this.waiting.length === 0) return;
      const stream = streams.readings(this.workerId);
      // The bound comes first: a reading that nothing ever removes must not be written.
      if (!this.bounded) this.bounded = (await this.log.keepFor(stream, KEPT_SECONDS)).ok;
      if (!this.bounded) return;
      const batch = this.waiting;
      this.waiting = [];
      const outcome = await this.log.append<ReadingsEvent>(stream, batch, 'any');
      if (outcome.ok || outcome.error.kind === 'unavailable') return;
      this.logger.warn({ failure: outcome.error }, 'the log refused readings; they are dropped');
    });
    return this.appending;
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.appending;
  }
}

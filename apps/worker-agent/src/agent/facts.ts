import type {
  BerthEvent,
  HistoryEvent,
  OperatorEvent,
  PullEvent,
  WorkerEvent,
} from '#domain/events/index.js';
import type { ModelKey, WorkerId } from '#domain/ids.js';
import type { Appended, EventLog, ExpectedRevision } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import { newId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';

export interface Why {
  /** What the fact belongs to: the call or action. */
  readonly correlationId: string;
  /** Id of the event that caused it. */
  readonly causationId: string;
}

const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5000;

/**
 * Appends facts of this worker. What happened, happened: a fact is tried again, under the same id, until the log has
 * it or the agent is closed; so a log that is away for a minute loses nothing.
 */
export class FactWriter {
  #closed = false;
  readonly #log: EventLog;
  readonly #workerId: WorkerId;
  readonly #logger: Logger;

  constructor(log: EventLog, workerId: WorkerId, logger: Logger) {
    this.#log = log;
    this.#workerId = workerId;
    this.#logger = logger;
  }

  worker(id: string, event: WorkerEvent, why: Why): Promise<Appended> {
    return this.#append(streams.worker(this.#workerId), id, event, why);
  }

  /** What this worker noticed by itself: nothing caused it, and it belongs to nothing. */
  ofItself(event: WorkerEvent): Promise<Appended> {
    const id = newId();
    return this.worker(id, event, { correlationId: id, causationId: id });
  }

  /** The end of what an operator asked for. */
  operator(id: string, event: OperatorEvent, why: Why): Promise<Appended> {
    return this.#append(streams.operator(this.#workerId), id, event, why);
  }

  /** A transfer onto this machine. */
  pull(id: string, event: PullEvent, why: Why): Promise<Appended> {
    return this.#append(streams.pull(this.#workerId), id, event, why);
  }

  history(id: string, modelKey: ModelKey, event: HistoryEvent, why: Why): Promise<Appended> {
    return this.#append(streams.history(this.#workerId, modelKey), id, event, why);
  }

  /** @throws when closed before the log had it, or when the log refuses it for good. */
  async #append(
    stream: string,
    id: string,
    event: BerthEvent,
    why: Why,
    expected: ExpectedRevision = 'any',
  ): Promise<Appended> {
    let delay = FIRST_RETRY_MS;
    const at = new Date().toISOString();
    for (;;) {
      const outcome = await this.#log.append(stream, [{ id, event, cause: why, at }], expected);
      if (outcome.ok) return outcome.value;
      const { error } = outcome;
      if (error.kind !== 'unavailable') {
        throw new Error(
          `The event log refused ${event.type}: ${error.kind === 'refused' ? error.message : 'conflict'}`,
        );
      }
      if (this.#closed) throw new Error(`${event.type} could not be written: ${error.message}`);
      this.#logger.warn({ type: event.type, reason: error.message }, 'a fact waits for the event log');
      await new Promise((resolve) => setTimeout(resolve, delay * (0.5 + Math.random())));
      delay = Math.min(delay * 2, LAST_RETRY_MS);
    }
  }

  close(): void {
    this.#closed = true;
  }
}

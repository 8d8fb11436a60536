import { Inject, Injectable } from '@nestjs/common';
import type { BerthEvent } from '#domain/events/index.js';
import type { EventLog, ExpectedRevision, NewEvent } from '#events/event-log.js';
import { newId } from '#runtime/ids.js';
import { fail } from '../problem/fail.js';

export const EVENT_LOG = Symbol('event log');

/** Where a command's event stands. `?wait=<position>` on a read waits until the views have it. */
export interface Written {
  readonly position: string;
  readonly revision: number;
}

/** Appends what a command decided; nothing is answered before the log has it. */
@Injectable()
export class CommandLog {
  readonly #log: Pick<EventLog, 'append'>;

  constructor(@Inject(EVENT_LOG) log: Pick<EventLog, 'append'>) {
    this.#log = log;
  }

  /**
   * @returns undefined when the stream's end is not the expected one.
   * @throws BerthFailure `event_log_unavailable`
   */
  async append(
    stream: string,
    event: BerthEvent,
    expected: ExpectedRevision,
    eventId = newId(),
  ): Promise<Written | undefined> {
    const written: NewEvent = {
      id: eventId,
      event,
      cause: { correlationId: eventId, causationId: eventId },
    };
    const outcome = await this.#log.append(stream, [written], expected);
    if (outcome.ok) {
      const { position, revision } = outcome.value;
      return { position: position.commit.toString(), revision };
    }
    if (outcome.error.kind === 'conflict') return undefined;
    const message = `The event log did not take the change: ${outcome.error.message}. It may have been written: look before trying again.`;
    fail('event_log_unavailable', message);
  }
}

/** The revision to expect of a stream that was folded so far. */
export const expecting = (revision: number): ExpectedRevision => (revision < 0 ? 'no-stream' : revision);

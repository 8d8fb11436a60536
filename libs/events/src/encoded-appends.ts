import type { BerthEvent, EventMetadata } from '#domain/events/index.js';
import { type EncodedEvent, eventText, type EventText } from './codec.js';
import type { AppendOutcome, EventLog, ExpectedRevision, NewEvent } from './event-log.js';

/** Appending what was serialised before: the spool's way, so that a call's events are serialised once. */
export interface EncodedAppends {
  text(event: NewEvent): EventText;
  appendEncoded(
    stream: string,
    events: readonly EncodedEvent[],
    expected: ExpectedRevision,
    deadlineMs?: number,
  ): Promise<AppendOutcome>;
}

const known = new WeakMap<EventLog, EncodedAppends>();

export const withEncodedAppends = (log: EventLog, appends: EncodedAppends): void =>
  void known.set(log, appends);

/** Of any log: one that takes no bytes gets the events read back from them. */
export function encodedAppendsOf(log: EventLog): EncodedAppends {
  return (
    known.get(log) ?? {
      text: (event) => eventText(event, { by: 'unknown', now: Date.now }),
      appendEncoded: (stream, events, expected, deadlineMs) =>
        log.append(stream, events.map(readBack), expected, deadlineMs === undefined ? {} : { deadlineMs }),
    }
  );
}

function readBack(encoded: EncodedEvent): NewEvent {
  const metadata = JSON.parse(encoded.metadata.toString('utf8')) as EventMetadata;
  return {
    id: encoded.id,
    event: {
      type: encoded.type,
      data: JSON.parse(encoded.data.toString('utf8')) as unknown,
    } as unknown as BerthEvent,
    cause: { correlationId: metadata.$correlationId, causationId: metadata.$causationId },
    at: metadata.at,
  };
}

import type { CallEventData } from '#domain/events/call-events.js';
import type { ApiId } from '#domain/ids.js';
import type { Spool } from '#events/spool.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { CallHistories } from '../fleet/call-histories.js';
import {
  type CallFacts,
  type CallFactSource,
  CallRecord,
  type CallStart,
  type CallTimes,
} from './call-record.js';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const VERSION_AT = 14;

/**
 * The id of a call's end, whoever writes it: the api that served it, or the one that found that api lost. It is the
 * call's own id with another version (8, which is free to use): derived without a hash, and no other event has it.
 */
export const callFinishedId = (callId: string): string =>
  UUID_V7.test(callId)
    ? `${callId.slice(0, VERSION_AT)}8${callId.slice(VERSION_AT + 1)}`
    : derivedId('CallFinished', callId);

export interface RecorderOptions {
  readonly spool: Spool;
  readonly apiId: ApiId;
  readonly histories: CallHistories;
  /** Told of every call that has ended, a few milliseconds later. */
  readonly onEnded: (endpoint: string, data: CallEventData<'CallFinished'>, times: CallTimes) => void;
  readonly now: () => number;
}

/** Call events are facts of the hot path: noted there, put together and written a few milliseconds later, never awaited. */
export class Recorder implements CallFacts {
  readonly #spool: Spool;
  readonly #apiId: ApiId;
  readonly #histories: CallHistories;
  readonly #onEnded: RecorderOptions['onEnded'];
  readonly #now: () => number;

  constructor(options: RecorderOptions) {
    this.#spool = options.spool;
    this.#apiId = options.apiId;
    this.#histories = options.histories;
    this.#onEnded = options.onEnded;
    this.#now = options.now;
  }

  begin(start: CallStart): CallRecord {
    return new CallRecord(this, this.#apiId, start, this.#now);
  }

  write(source: CallFactSource, fact: 'started' | 'finished'): void {
    const { callId, modelKey } = source;
    const cause = { correlationId: callId, causationId: callId };
    const made = () => {
      if (fact === 'started') {
        const event = source.started();
        this.#histories.note(modelKey, event);
        // A call's start takes the call's own id, which no other event has.
        return { id: callId, event, cause, at: event.data.receivedAt };
      }
      const event = source.finished();
      this.#histories.note(modelKey, event);
      this.#onEnded(source.endpoint, event.data, source.times());
      return { id: callFinishedId(callId), event, cause, at: event.data.stamps.finishedAt };
    };
    // A log with the start of a call and not its end, or the reverse, would say what never was.
    this.#spool.record(streams.calls(modelKey), made, {
      pair: callId,
      half: fact === 'started' ? 'first' : 'last',
    });
  }
}

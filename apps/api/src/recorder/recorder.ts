import type { CallEvent } from '#domain/events/call-events.js';
import type { ApiId, CallId } from '#domain/ids.js';
import type { Spool } from '#events/spool.js';
import { streams } from '#events/streams.js';
import { derivedId } from '#runtime/ids.js';
import type { CallHistories } from '../fleet/call-histories.js';
import { type CallFacts, CallRecord, type CallStart } from './call-record.js';

/** The id of a call's end, whoever writes it: the api that served it, or the one that found that api lost. */
export const callFinishedId = (callId: string): string => derivedId('CallFinished', callId);

/** Call events are facts of the hot path: they go to the spool and are never awaited. */
export class Recorder implements CallFacts {
  readonly #spool: Spool;
  readonly #apiId: ApiId;
  readonly #histories: CallHistories;
  readonly #now: () => number;

  constructor(options: { spool: Spool; apiId: ApiId; histories: CallHistories; now: () => number }) {
    this.#spool = options.spool;
    this.#apiId = options.apiId;
    this.#histories = options.histories;
    this.#now = options.now;
  }

  begin(start: CallStart): CallRecord {
    return new CallRecord(this, this.#apiId, start, this.#now);
  }

  write(event: CallEvent, callId: CallId): void {
    const { modelKey } = event.data;
    // A call's start takes the call's own id, which no other event has.
    const id = event.type === 'CallStarted' ? callId : callFinishedId(callId);
    this.#spool.record(streams.calls(modelKey), {
      id,
      event,
      cause: { correlationId: callId, causationId: callId },
    });
    this.#histories.note(modelKey, event);
  }
}

import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { ApiId, CallId } from '#domain/ids.js';
import { RecentIds } from '../recent-ids.js';
import { type Check, type Place, placeOf, type Report } from './violation.js';

/** Calls that are over are remembered for as long as a repetition is likely; after that one reads as never started. */
const KEPT_FINISHED = 100_000;

interface Call {
  readonly started: Place;
  readonly apiId: ApiId;
  readonly finished: boolean;
}

/** Invariant 5: every call has one start and one end; another api writes the end only for one that was lost, as abandoned. */
export class CallsEnd implements Check {
  readonly #report: Report;
  readonly #calls = new Map<CallId, Call>();
  readonly #lost = new Set<ApiId>();
  readonly #byAnother: {
    readonly at: Place;
    readonly by: string;
    readonly apiId: ApiId;
    readonly callId: CallId;
  }[] = [];
  readonly #finished = new RecentIds(KEPT_FINISHED, (id) => this.#calls.delete(id as CallId));

  constructor(report: Report) {
    this.#report = report;
  }

  take(recorded: Recorded<BerthEvent>): void {
    const { event, metadata } = recorded;
    if (event.type === 'ApiLost') {
      this.#lost.add(event.data.apiId);
    } else if (event.type === 'CallStarted') {
      const { callId, apiId } = event.data;
      if (this.#calls.has(callId)) this.#report(5, recorded, `Call ${callId} is started a second time.`);
      else this.#calls.set(callId, { started: placeOf(recorded), apiId, finished: false });
    } else if (event.type === 'CallFinished') {
      const { callId, outcome } = event.data;
      const call = this.#calls.get(callId);
      if (!call) {
        this.#report(5, recorded, `Call ${callId} ends and was never started.`);
        return;
      }
      if (call.finished) this.#report(5, recorded, `Call ${callId} ends a second time.`);
      this.#calls.set(callId, { ...call, finished: true });
      this.#finished.add(callId);
      if (metadata.by === `api:${call.apiId}`) return;
      if (outcome !== 'abandoned')
        this.#report(
          5,
          recorded,
          `Call ${callId} of api ${call.apiId} was ended by ${metadata.by} as ${outcome}; only abandoned may be.`,
        );
      this.#byAnother.push({ at: placeOf(recorded), by: metadata.by, apiId: call.apiId, callId });
    }
  }

  finish(atRest: boolean): void {
    // Its calls are closed before an api is called lost, so only a log at rest tells.
    if (!atRest) return;
    for (const { at, by, apiId, callId } of this.#byAnother) {
      if (!this.#lost.has(apiId))
        this.#report(5, at, `Call ${callId} was ended by ${by}, and its api ${apiId} was not lost.`);
    }
    for (const [callId, call] of this.#calls) {
      if (!call.finished) this.#report(5, call.started, `Call ${callId} has no end.`);
    }
  }
}

import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { CallId, ResidentId } from '#domain/ids.js';
import { type Check, type Place, placeOf, type Report } from './violation.js';

interface Eviction {
  readonly at: Place;
  readonly startedMs: number;
  readonly endedMs: number;
}

/**
 * Invariant 4: an eviction is a drain. Acknowledgements are no events; their absence shows by a stop that was never
 * started as an eviction, and by calls that were on the resident and failed while it was taken away.
 */
export class Drains implements Check {
  readonly #report: Report;
  readonly #started = new Map<ResidentId, number>();
  readonly #evictions = new Map<ResidentId, Eviction>();
  readonly #failed: {
    readonly at: Place;
    readonly callId: CallId;
    readonly residentId: ResidentId;
    readonly forwardedMs: number;
    readonly finishedMs: number;
  }[] = [];

  constructor(report: Report) {
    this.#report = report;
  }

  take(recorded: Recorded<BerthEvent>): void {
    const { event, metadata } = recorded;
    if (event.type === 'EvictionStarted') {
      this.#started.set(event.data.residentId, Date.parse(metadata.at));
    } else if (event.type === 'EvictionFailed') {
      this.#started.delete(event.data.residentId);
    } else if (event.type === 'ResidentEvicted') {
      const { residentId, reason } = event.data;
      const startedMs = this.#started.get(residentId);
      if (startedMs === undefined)
        this.#report(
          4,
          recorded,
          `Resident ${residentId} was stopped though its eviction was never started.`,
        );
      // A shutdown ends calls after its grace; everything else waits for them.
      else if (reason !== 'shutdown')
        this.#evictions.set(residentId, {
          at: placeOf(recorded),
          startedMs,
          endedMs: Date.parse(metadata.at),
        });
    } else if (event.type === 'CallFinished' && event.data.outcome === 'failed') {
      // An answer of 4xx is the caller's own fault, whenever it comes.
      const { callId, status, residentId, stamps } = event.data;
      if (residentId !== undefined && stamps.forwardedAt !== undefined && !(status >= 400 && status < 500))
        this.#failed.push({
          at: placeOf(recorded),
          callId,
          residentId,
          forwardedMs: Date.parse(stamps.forwardedAt),
          finishedMs: Date.parse(stamps.finishedAt),
        });
    }
  }

  finish(): void {
    for (const { at, callId, residentId, forwardedMs, finishedMs } of this.#failed) {
      const eviction = this.#evictions.get(residentId);
      if (!eviction) continue;
      if (forwardedMs <= eviction.endedMs && finishedMs >= eviction.startedMs)
        this.#report(
          4,
          at,
          `Call ${callId} failed on resident ${residentId} while it was being evicted (${eviction.at.stream}, revision ${eviction.at.revision}).`,
        );
    }
  }
}

import type { BerthEvent, CallEventData, Recorded } from '#domain/events/index.js';
import type { ResidentId } from '#domain/ids.js';
import type { Check, Report } from './violation.js';

interface Eviction {
  readonly recorded: Recorded<BerthEvent>;
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
    readonly recorded: Recorded<BerthEvent>;
    readonly data: CallEventData<'CallFinished'>;
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
        this.#evictions.set(residentId, { recorded, startedMs, endedMs: Date.parse(metadata.at) });
    } else if (event.type === 'CallFinished' && event.data.outcome === 'failed') {
      // An answer of 4xx is the caller's own fault, whenever it comes.
      const { status, residentId, stamps } = event.data;
      if (residentId !== undefined && stamps.forwardedAt !== undefined && !(status >= 400 && status < 500))
        this.#failed.push({ recorded, data: event.data });
    }
  }

  finish(): void {
    for (const { recorded, data } of this.#failed) {
      const eviction = data.residentId && this.#evictions.get(data.residentId);
      if (!eviction) continue;
      const forwardedMs = Date.parse(data.stamps.forwardedAt ?? data.stamps.receivedAt);
      const finishedMs = Date.parse(data.stamps.finishedAt);
      if (forwardedMs <= eviction.endedMs && finishedMs >= eviction.startedMs)
        this.#report(
          4,
          recorded,
          `Call ${data.callId} failed on resident ${data.residentId ?? ''} while it was being evicted (${eviction.recorded.stream}, revision ${eviction.recorded.revision}).`,
        );
    }
  }
}

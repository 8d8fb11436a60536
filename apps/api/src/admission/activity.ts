import type { CallHistory } from '#domain/calls/call-history.js';
import type { ModelKey, ResidentId } from '#domain/ids.js';
import type { ResidentActivity } from '#placement/contract.js';
import { freeInSeconds, type Ongoing } from '#placement/predict.js';

interface Resident {
  readonly modelKey: ModelKey;
  readonly ongoing: Set<Ongoing>;
  lastCallEndedAtMs: number | undefined;
}

/** Calls under way, by resident: facts of the moment, which the log does not have. */
export class Activity {
  readonly #residents = new Map<ResidentId, Resident>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  inFlight(id: ResidentId): number {
    return this.#residents.get(id)?.ongoing.size ?? 0;
  }

  /** @returns what ends the call; a second call of it does nothing. */
  begin(
    id: ResidentId,
    modelKey: ModelKey,
    call: { readonly promptTokens: number; readonly maxTokens?: number },
  ): () => boolean {
    let resident = this.#residents.get(id);
    if (!resident) {
      resident = { modelKey, ongoing: new Set(), lastCallEndedAtMs: undefined };
      this.#residents.set(id, resident);
    }
    const ongoing: Ongoing = {
      startedAtMs: this.#now(),
      promptTokens: call.promptTokens,
      ...(call.maxTokens === undefined ? {} : { maxTokens: call.maxTokens }),
    };
    resident.ongoing.add(ongoing);
    const { ongoing: set } = resident;
    const owner = resident;
    return () => {
      if (!set.delete(ongoing)) return false;
      owner.lastCallEndedAtMs = this.#now();
      return true;
    };
  }

  /** A resident has ended; calls that still run on it end on their own. */
  forget(id: ResidentId): void {
    this.#residents.delete(id);
  }

  /** For a decision: how busy each resident is, and when it is predicted to be free. */
  snapshot(
    ids: Iterable<ResidentId>,
    historyOf: (key: ModelKey) => CallHistory,
  ): ReadonlyMap<ResidentId, ResidentActivity> {
    const now = this.#now();
    const all = new Map<ResidentId, ResidentActivity>();
    for (const id of ids) {
      const resident = this.#residents.get(id);
      if (!resident) continue;
      const free = freeInSeconds(historyOf(resident.modelKey), resident.ongoing, now);
      all.set(id, {
        callsInFlight: resident.ongoing.size,
        ...(resident.lastCallEndedAtMs === undefined
          ? {}
          : { lastCallEndedAtMs: resident.lastCallEndedAtMs }),
        ...(free === undefined ? {} : { freeInSeconds: free }),
      });
    }
    return all;
  }
}

import type { CallHistory, KeepAlive } from '#domain/calls/call-history.js';
import type { CallId, ModelKey, ResidentId } from '#domain/ids.js';
import { NO_SLOT, SlotList, type Slotted } from '#runtime/slot-list.js';
import type { ResidentActivity } from '#placement/contract.js';
import type { CallOptions } from '#placement/model-name.js';
import { endsInSeconds, freeInSeconds, type Ongoing } from '#placement/predict.js';

type OngoingCall = Ongoing & Slotted;

interface Resident {
  readonly modelKey: ModelKey;
  readonly ongoing: SlotList<OngoingCall>;
  lastCallEndedAtMs: number | undefined;
  lastCall: LastCall | undefined;
}

/** The call that came last, and what it said of how long its resident is kept. */
interface LastCall {
  readonly beganAtMs: number;
  readonly keepAlive?: KeepAlive;
}

/** What only this api knows of how a resident is used. */
export interface Use {
  readonly callsInFlight: number;
  readonly lastCallEndedAtMs?: number;
  readonly lastCall?: LastCall;
}

/** Calls under way, by resident: facts of the moment, which the log does not have. */
export class Activity {
  readonly #residents = new Map<ResidentId, Resident>();
  readonly #listeners = new Set<(id: ResidentId, inFlight: number) => void>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Told after each call that begins or ends on a resident. */
  onChange(listener: (id: ResidentId, inFlight: number) => void): void {
    this.#listeners.add(listener);
  }

  inFlight(id: ResidentId): number {
    return this.#residents.get(id)?.ongoing.size ?? 0;
  }

  lastCallEndedAtMs(id: ResidentId): number | undefined {
    return this.#residents.get(id)?.lastCallEndedAtMs;
  }

  /** @returns what ends the call; a second call of it does nothing. */
  begin(
    id: ResidentId,
    modelKey: ModelKey,
    call: {
      readonly callId: CallId;
      readonly promptTokens: number;
      readonly maxTokens?: number;
      readonly options: Pick<CallOptions, 'settings'>;
    },
  ): () => boolean {
    const resident = this.#of(id, modelKey);
    resident.lastCall = this.#lastCall(call.callId, call.options.settings.idleUnloadSeconds);
    const ongoing: OngoingCall = {
      slot: NO_SLOT,
      startedAtMs: this.#now(),
      promptTokens: call.promptTokens,
      ...(call.maxTokens === undefined ? {} : { maxTokens: call.maxTokens }),
    };
    resident.ongoing.add(ongoing);
    this.#changed(id, resident);
    return () => {
      if (!resident.ongoing.delete(ongoing)) return false;
      resident.lastCallEndedAtMs = this.#now();
      this.#changed(id, resident);
      return true;
    };
  }

  /** As after a call that says so: it goes as soon as nothing is on it any more. */
  unloadSoon(id: ResidentId, modelKey: ModelKey, callId: CallId): void {
    this.#of(id, modelKey).lastCall = this.#lastCall(callId, 0);
  }

  useOf(id: ResidentId): Use {
    const resident = this.#residents.get(id);
    if (!resident) return { callsInFlight: 0 };
    const { ongoing, lastCallEndedAtMs, lastCall } = resident;
    return {
      callsInFlight: ongoing.size,
      ...(lastCallEndedAtMs === undefined ? {} : { lastCallEndedAtMs }),
      ...(lastCall === undefined ? {} : { lastCall }),
    };
  }

  #lastCall(callId: CallId, seconds: number | undefined): LastCall {
    const beganAtMs = this.#now();
    return seconds === undefined ? { beganAtMs } : { beganAtMs, keepAlive: { callId, seconds } };
  }

  #changed(id: ResidentId, { ongoing }: Resident): void {
    for (const listener of this.#listeners) listener(id, ongoing.size);
  }

  #of(id: ResidentId, modelKey: ModelKey): Resident {
    let resident = this.#residents.get(id);
    if (!resident) {
      resident = { modelKey, ongoing: new SlotList(), lastCallEndedAtMs: undefined, lastCall: undefined };
      this.#residents.set(id, resident);
    }
    return resident;
  }

  /** A resident has ended; calls that still run on it end on their own. */
  forget(id: ResidentId): void {
    this.#residents.delete(id);
  }

  /** When each call on these residents of a model is predicted to end; undefined when that is not known. */
  endsIn(ids: readonly ResidentId[], calls: CallHistory): readonly number[] | undefined {
    const ongoing = ids.flatMap((id) => [...(this.#residents.get(id)?.ongoing ?? [])]);
    return endsInSeconds(calls, ongoing, this.#now());
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

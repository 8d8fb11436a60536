import { BYTES_PER_TOKEN, type CallHistory, foldCalls, initialCalls } from '#domain/calls/call-history.js';
import type { CallEvent, CallEventData } from '#domain/events/call-events.js';
import type { CallId, ModelKey, ResidentId } from '#domain/ids.js';
import type { ResidentActivity } from '../contract.js';
import { freeInSeconds, type Ongoing } from '../predict.js';

/** A call as its two events tell it. */
export interface SeenCall {
  readonly started: CallEventData<'CallStarted'>;
  readonly receivedAtMs: number;
  finished?: CallEventData<'CallFinished'>;
  finishedAtMs?: number;
}

interface Stamped {
  readonly atMs: number;
  readonly event: CallEvent;
}

const byTime = (a: Stamped, b: Stamped): number => a.atMs - b.atMs;
const eventOf = ({ event }: Stamped): CallEvent => event;

interface OfModel {
  readonly events: Stamped[];
  sorted: boolean;
  /** How many of them are in `history`. */
  folded: number;
  history: CallHistory;
}

/**
 * Calls of a stretch of the log. Histories are mostly asked for at rising times, and hold what had happened by then: the
 * events of calls reach the log a little after that, so the time that they tell counts, and not their place.
 */
export class SeenCalls {
  readonly #calls = new Map<CallId, SeenCall>();
  readonly #models = new Map<ModelKey, OfModel>();
  readonly #byResident = new Map<ResidentId, SeenCall[]>();

  get size(): number {
    return this.#calls.size;
  }

  get all(): Iterable<SeenCall> {
    return this.#calls.values();
  }

  get(id: CallId): SeenCall | undefined {
    return this.#calls.get(id);
  }

  add(event: CallEvent): void {
    const { callId } = event.data;
    const known = this.#calls.get(callId);
    if (event.type === 'CallStarted') {
      if (known) return;
      const receivedAtMs = Date.parse(event.data.receivedAt);
      this.#calls.set(callId, { started: event.data, receivedAtMs });
      this.#note(event, receivedAtMs);
      return;
    }
    if (known?.finished) return;
    const finishedAtMs = Date.parse(event.data.stamps.finishedAt);
    this.#note(event, finishedAtMs);
    if (!known) return;
    known.finished = event.data;
    known.finishedAtMs = finishedAtMs;
    const { residentId } = event.data;
    if (residentId === undefined) return;
    const list = this.#byResident.get(residentId);
    if (list) list.push(known);
    else this.#byResident.set(residentId, [known]);
  }

  /** What had happened by a time. Folded on from the question before; anew when that was for later than this one. */
  historyAt(key: ModelKey, nowMs: number): CallHistory {
    const of = this.#models.get(key);
    if (!of) return initialCalls(key);
    if (!of.sorted) {
      of.events.sort(byTime);
      of.sorted = true;
    }
    if ((of.events[of.folded - 1]?.atMs ?? -Infinity) > nowMs) {
      of.folded = 0;
      of.history = initialCalls(key);
    }
    const from = of.folded;
    while ((of.events[of.folded]?.atMs ?? Infinity) <= nowMs) of.folded += 1;
    // The same object as long as nothing happened: what is worked out from a history is kept with it.
    if (of.folded > from) of.history = foldCalls(of.history, of.events.slice(from, of.folded).map(eventOf));
    return of.history;
  }

  /** What had happened by a time, whatever was asked before. Folded anew: not for every call. */
  historyUntil(key: ModelKey, ms: number): CallHistory {
    const events = (this.#models.get(key)?.events ?? []).filter(({ atMs }) => atMs <= ms);
    return foldCalls(initialCalls(key), events.sort(byTime).map(eventOf));
  }

  /** How busy a resident was, from the stamps of its calls: to the millisecond what the api knew, or nearly so. */
  activityAt(id: ResidentId, nowMs: number): ResidentActivity | undefined {
    const calls = this.#byResident.get(id);
    const [first] = calls ?? [];
    if (!calls || !first) return undefined;
    const ongoing: Ongoing[] = [];
    let lastCallEndedAtMs: number | undefined;
    for (const { started, finished, finishedAtMs = Infinity } of calls) {
      const from = Date.parse(finished?.stamps.forwardedAt ?? '');
      if (!(from <= nowMs)) continue;
      if (finishedAtMs <= nowMs) lastCallEndedAtMs = Math.max(lastCallEndedAtMs ?? 0, finishedAtMs);
      else ongoing.push({ startedAtMs: from, promptTokens: promptEstimate(started) });
    }
    const free = freeInSeconds(this.historyAt(first.started.modelKey, nowMs), ongoing, nowMs);
    return {
      callsInFlight: ongoing.length,
      ...(lastCallEndedAtMs === undefined ? {} : { lastCallEndedAtMs }),
      ...(free === undefined ? {} : { freeInSeconds: free }),
    };
  }

  #note(event: CallEvent, atMs: number): void {
    const key = event.data.modelKey;
    const of = this.#models.get(key);
    if (!of) {
      this.#models.set(key, {
        events: [{ atMs, event }],
        sorted: true,
        folded: 0,
        history: initialCalls(key),
      });
      return;
    }
    of.sorted &&= (of.events.at(-1)?.atMs ?? 0) <= atMs;
    of.events.push({ atMs, event });
  }
}

export const promptEstimate = (started: Pick<CallEventData<'CallStarted'>, 'promptBytes'>): number =>
  Math.ceil(started.promptBytes / BYTES_PER_TOKEN);

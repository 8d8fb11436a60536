import {
  bytesPerToken,
  type CallHistory,
  evolveCalls,
  foldCalls,
  initialCalls,
} from '#domain/calls/call-history.js';
import type { CallEvent } from '#domain/events/index.js';
import type { ModelKey } from '#domain/ids.js';
import type { EventLog } from '#events/event-log.js';
import { streams } from '#events/streams.js';

/** Enough for the last 20 finished calls and the last 64 arrivals. */
const READ_BACK_EVENTS = 128;
/** Calls that other apis took in the meantime are seen after this long. */
const FRESH_MS = 30_000;
const KEPT_OWN = 128;

/** How long an estimate stands. */
const ESTIMATE_MS = 1000;

interface Known {
  bytesPerToken: number | undefined;
  estimatedAtMs: number;
  history: CallHistory;
  readAtMs: number;
  /** Own facts since then, not yet in `history`. */
  pending: CallEvent[];
}

/**
 * The recent calls of models, as decisions need them: read backwards from the stream once, then kept warm by the facts
 * that this api writes itself.
 */
export class CallHistories {
  readonly #known = new Map<ModelKey, Known>();
  /** Own facts that were noted while their stream is read: the log may not have them yet. */
  readonly #notedMeanwhile = new Map<ModelKey, CallEvent[]>();
  readonly #log: EventLog;
  readonly #now: () => number;

  constructor(log: EventLog, now: () => number) {
    this.#log = log;
    this.#now = now;
  }

  /** Takes a fact that was just written to the spool; nothing is kept of models that no decision looked at. */
  note(key: ModelKey, event: CallEvent): void {
    this.#notedMeanwhile.get(key)?.push(event);
    const known = this.#known.get(key);
    if (!known) return;
    known.pending.push(event);
    if (known.pending.length > KEPT_OWN) this.#settle(known);
  }

  /** What is known at this moment; empty for a model that was never loaded. */
  get(key: ModelKey): CallHistory {
    const known = this.#known.get(key);
    if (!known) return initialCalls(key);
    this.#settle(known);
    return known.history;
  }

  /** As of a moment ago: every call asks, and it moves slowly. */
  bytesPerToken(key: ModelKey): number | undefined {
    const known = this.#known.get(key);
    if (!known) return undefined;
    const now = this.#now();
    if (now - known.estimatedAtMs > ESTIMATE_MS) {
      this.#settle(known);
      known.bytesPerToken = bytesPerToken(known.history);
      known.estimatedAtMs = now;
    }
    return known.bytesPerToken;
  }

  /** Whether it was ever read: an old history is still a history. */
  isKnown(key: ModelKey): boolean {
    return this.#known.has(key);
  }

  isFresh(key: ModelKey): boolean {
    const known = this.#known.get(key);
    return known !== undefined && this.#now() - known.readAtMs < FRESH_MS;
  }

  /** Reads the stream of every model that is not fresh. @throws when the log does not answer. */
  async refresh(keys: Iterable<ModelKey>): Promise<void> {
    const stale = [...new Set(keys)].filter((key) => !this.isFresh(key));
    await Promise.all(stale.map((key) => this.#read(key)));
  }

  /** Reads the stream again however fresh it is: what other apis wrote a moment ago counts. */
  reread(key: ModelKey): Promise<void> {
    return this.#read(key);
  }

  async #read(key: ModelKey): Promise<void> {
    const noted: CallEvent[] = [];
    this.#notedMeanwhile.set(key, noted);
    try {
      const newestFirst = await this.#log.readBackwards<CallEvent>(streams.calls(key), READ_BACK_EVENTS);
      let history = initialCalls(key);
      for (const recorded of [...newestFirst].reverse()) history = evolveCalls(history, recorded);
      const read = new Set(newestFirst.map(({ event }) => nameOf(event)));
      const pending = noted.filter((event) => !read.has(nameOf(event)));
      const estimates = { bytesPerToken: undefined, estimatedAtMs: 0 };
      this.#known.set(key, { history, readAtMs: this.#now(), pending, ...estimates });
    } finally {
      if (this.#notedMeanwhile.get(key) === noted) this.#notedMeanwhile.delete(key);
    }
  }

  #settle(known: Known): void {
    if (known.pending.length === 0) return;
    known.history = foldCalls(known.history, known.pending);
    known.pending = [];
  }
}

const nameOf = ({ type, data }: CallEvent): string => `${type} ${data.callId}`;

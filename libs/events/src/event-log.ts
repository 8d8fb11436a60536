import type { BerthEvent, LogPosition, Recorded } from '#domain/events/index.js';

/** What the stream's end must be for an append to be taken. */
export type ExpectedRevision = 'any' | 'no-stream' | number;

/** Why an event is written: becomes `$correlationId`, `$causationId` and `by`. */
export interface Cause {
  readonly correlationId: string;
  readonly causationId: string;
}

export interface NewEvent<E extends BerthEvent = BerthEvent> {
  /** Give a derived id wherever a retry could write twice. */
  readonly id: string;
  readonly event: E;
  readonly cause: Cause;
  /** ISO time; the log's clock (`now()` of its options) when left out. */
  readonly at?: string;
}

export interface Appended {
  /** Of the last event written. */
  readonly revision: number;
  readonly position: LogPosition;
}

export type AppendFailure =
  /** The stream's end is not what was expected. `actual` is -1 for a stream that does not exist. */
  | { readonly kind: 'conflict'; readonly actual: number }
  /** Not acknowledged in time or the log is out of reach: it may have been written. Retry with the same ids. */
  | { readonly kind: 'unavailable'; readonly message: string }
  | { readonly kind: 'refused'; readonly message: string };

export type AppendOutcome =
  { readonly ok: true; readonly value: Appended } | { readonly ok: false; readonly error: AppendFailure };

export interface Subscription {
  /** Settles when the subscription is over for good: unsubscribed, or a final error (rejects). */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** Handlers run one at a time and are awaited: a slow one holds the stream back. */
export interface StreamSubscriber<E extends BerthEvent> {
  onEvent(recorded: Recorded<E>): void | Promise<void>;
  /** Each time that everything written so far has been handled; also for an empty or missing stream. */
  onCaughtUp?(): void | Promise<void>;
  /** The connection broke (false) and is back (true). Events are never lost or repeated over it. */
  onConnected?(connected: boolean): void;
}

export interface AllSubscriber {
  onEvent(recorded: Recorded<BerthEvent>): void | Promise<void>;
  onCaughtUp?(): void | Promise<void>;
  /** A position up to which nothing that matches was passed over; in order with the events. */
  onCheckpoint?(position: LogPosition): void | Promise<void>;
  onConnected?(connected: boolean): void;
}

export interface AllOptions {
  readonly after?: LogPosition;
  /** It reads what is there and is stopped then: whoever follows the same streams is not in its way. */
  readonly once?: boolean;
}

/**
 * Typed access to EventStoreDB, KurrentDB or the embedded node: the only one there is. Reconnects by itself with
 * jittered back-off; puts its own deadline around every append; never leaves a read open.
 */
export interface EventLog {
  /** UUID of this log, from its first event; another value later means another log: rebuild. */
  identity(): Promise<string>;
  append<E extends BerthEvent>(
    stream: string,
    events: readonly NewEvent<E>[],
    expected: ExpectedRevision,
    options?: { readonly deadlineMs?: number },
  ): Promise<AppendOutcome>;
  /** In order, from `fromRevision` (default the first); empty for a missing stream. */
  readForwards<E extends BerthEvent>(
    stream: string,
    options?: { readonly fromRevision?: number; readonly maxCount?: number },
  ): AsyncIterable<Recorded<E>>;
  /** Newest first. */
  readBackwards<E extends BerthEvent>(stream: string, maxCount: number): Promise<readonly Recorded<E>[]>;
  fold<S, E extends BerthEvent>(
    stream: string,
    initial: S,
    evolve: (state: S, recorded: Recorded<E>) => S,
  ): Promise<S>;
  /** From after `afterRevision` (default: the first event). */
  subscribe<E extends BerthEvent>(
    stream: string,
    subscriber: StreamSubscriber<E>,
    options?: { readonly afterRevision?: number },
  ): Subscription;
  /** The whole log, filtered on the server by stream prefixes (`worker-`, `calls-`), after a position. */
  subscribeAll(prefixes: readonly string[], subscriber: AllSubscriber, options?: AllOptions): Subscription;
  /** Position of the newest event of the log; undefined when it is empty. */
  endPosition(): Promise<LogPosition | undefined>;
  /**
   * Bounds how long the events of a stream are kept (`$maxAge`). A stream that has bounds already keeps them.
   */
  keepFor(stream: string, seconds: number): Promise<AppendOutcome>;
  close(): Promise<void>;
}

import type { BerthEvent, LogPosition, Recorded } from '#domain/events/index.js';
import { BackOff, pause } from '../back-off.js';
import type { EventLog, Subscription } from '../event-log.js';
import { messageOf } from '../log-failures.js';
import type { CatchUpSink } from './sink.js';

export interface CatchUpOptions {
  readonly log: EventLog;
  /** Named in messages. */
  readonly name: string;
  /** Prefixes of the streams that are followed; none: all but the system's. */
  readonly prefixes: readonly string[];
  readonly sink: CatchUpSink;
  /** A batch is committed when it has this many events (1,000), or is this old. */
  readonly batchEvents?: number;
  /** While catching up (50 ms). Once live, events are committed after `liveLingerMs` (5 ms). */
  readonly batchMs?: number;
  readonly liveLingerMs?: number;
  readonly warn?: (message: string) => void;
  /** After each commit. */
  readonly onProgress?: (progress: Progress) => void;
  /** The connection to the log broke (false) or is there (true). */
  readonly onConnected?: (connected: boolean) => void;
  readonly backOff?: BackOff;
}

export interface Progress {
  readonly position: LogPosition;
  /** Events of this commit. */
  readonly events: number;
  readonly live: boolean;
}

export interface CatchUp {
  /** Settles when it has been stopped. Troubles do not end it: it says them, waits, and begins again where the sink stands. */
  readonly ended: Promise<void>;
  /** What is committed. */
  readonly position: LogPosition | undefined;
  /** Everything that was in the log when it last caught up has been committed. */
  readonly live: boolean;
  /** Commits what is in hand, then ends. */
  stop(): Promise<void>;
}

/** How long a position may move on without events before it is committed by itself. */
const CHECKPOINT_AFTER_MS = 5000;

/** Follows the log into a sink, exactly once, through failures of either. */
export function runCatchUp(options: CatchUpOptions): CatchUp {
  return new Runner(options);
}

class Runner implements CatchUp {
  readonly ended: Promise<void>;
  position: LogPosition | undefined;
  live = false;
  readonly #o: CatchUpOptions;
  readonly #warn: (message: string) => void;
  readonly #backOff: BackOff;
  readonly #stopping = new AbortController();
  #pass: Pass | undefined;

  constructor(options: CatchUpOptions) {
    this.#o = options;
    this.#warn = options.warn ?? (() => undefined);
    this.#backOff = options.backOff ?? new BackOff();
    this.ended = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#pass?.finish();
    await this.ended;
  }

  async #run(): Promise<void> {
    while (!this.#stopped()) {
      try {
        await this.#once();
      } catch (error) {
        this.live = false;
        const waitMs = this.#backOff.next();
        this.#warn(
          `Projection ${this.#o.name} stopped at ${describe(this.position)}: ${messageOf(error)}. It begins again from its checkpoint in ${Math.round(waitMs)} ms.`,
        );
        await pause(waitMs, this.#stopping.signal);
      }
    }
  }

  /** From the sink's checkpoint until something fails or it is stopped. */
  async #once(): Promise<void> {
    const { log, sink, name } = this.#o;
    const logId = await log.identity();
    const begun = await sink.begin();
    let after = begun.checkpoint;
    const why = await this.#reasonToRebuild(logId, begun);
    if (why !== undefined) {
      this.#warn(`Projection ${name} is rebuilt from the first event: ${why}.`);
      await sink.reset(logId);
      after = undefined;
    }
    if (this.#stopped()) return;
    this.position = after;
    const pass = new Pass(this.#o, logId, after, (progress) => {
      this.position = progress.position;
      this.live = progress.live;
      this.#backOff.reset();
      this.#o.onProgress?.(progress);
    });
    this.#pass = pass;
    try {
      await pass.run(() => (this.live = true));
      if (!this.#stopped()) throw new Error('the event log was closed under it');
    } finally {
      this.#pass = undefined;
    }
  }

  async #reasonToRebuild(
    logId: string,
    begun: { readonly checkpoint?: LogPosition; readonly logId?: string },
  ): Promise<string | undefined> {
    if (begun.logId !== undefined && begun.logId !== logId)
      return `it was made from event log ${begun.logId}, and this is ${logId}`;
    if (!begun.checkpoint) return undefined;
    if (begun.logId === undefined) return 'its checkpoint does not say which event log it belongs to';
    const end = await this.#o.log.endPosition();
    return end === undefined || end.commit < begun.checkpoint.commit
      ? `its checkpoint ${describe(begun.checkpoint)} lies beyond the end of the log, ${describe(end)}: the log was restored from an earlier state`
      : undefined;
  }

  #stopped(): boolean {
    return this.#stopping.signal.aborted;
  }
}

/** One subscription and the batches that come of it. */
class Pass {
  readonly #o: CatchUpOptions;
  readonly #logId: string;
  readonly #onCommit: (progress: Progress) => void;
  readonly #batchEvents: number;
  #committed: LogPosition | undefined;
  #events: Recorded<BerthEvent>[] = [];
  #seen: LogPosition | undefined;
  #timer: NodeJS.Timeout | undefined;
  #committing: Promise<void> = Promise.resolve();
  #live = false;
  #subscription: Subscription | undefined;
  #failed: ((error: unknown) => void) | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    options: CatchUpOptions,
    logId: string,
    after: LogPosition | undefined,
    onCommit: (progress: Progress) => void,
  ) {
    this.#o = options;
    this.#logId = logId;
    this.#committed = after;
    this.#onCommit = onCommit;
    this.#batchEvents = options.batchEvents ?? 1000;
  }

  async run(onLive: () => void): Promise<void> {
    const failure = new Promise<never>((_resolve, reject) => (this.#failed = reject));
    failure.catch(() => undefined);
    const { onConnected } = this.#o;
    this.#subscription = this.#o.log.subscribeAll(
      this.#o.prefixes,
      {
        onEvent: (recorded) => this.#take(recorded),
        onCheckpoint: (position) => this.#moveTo(position),
        onCaughtUp: async () => {
          await this.#flush();
          this.#live = true;
          onLive();
        },
        ...(onConnected ? { onConnected } : {}),
      },
      this.#committed ? { after: this.#committed } : {},
    );
    try {
      await Promise.race([this.#subscription.ended, failure]);
    } finally {
      clearTimeout(this.#timer);
      await this.#subscription.stop();
      await this.#committing.catch(() => undefined);
    }
  }

  async finish(): Promise<void> {
    await this.#subscription?.stop();
    await this.#flush().catch(() => undefined);
  }

  async #take(recorded: Recorded<BerthEvent>): Promise<void> {
    this.#throwFailure();
    this.#events.push(recorded);
    this.#seen = recorded.position;
    if (this.#events.length >= this.#batchEvents) await this.#flushBehind();
    else this.#soon(this.#live ? (this.#o.liveLingerMs ?? 5) : (this.#o.batchMs ?? 50));
  }

  #moveTo(position: LogPosition): void {
    this.#throwFailure();
    this.#seen = position;
    this.#soon(CHECKPOINT_AFTER_MS);
  }

  #soon(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#flush().catch((error: unknown) => this.#failed?.(error));
    }, ms);
  }

  /**
   * Commits what is in hand while the next batch is collected: reading and writing take turns on one batch each. A slow
   * sink holds the log back, since the next batch waits for this commit.
   */
  async #flushBehind(): Promise<void> {
    const before = this.#committing;
    this.#flush().catch((error: unknown) => this.#failed?.(error));
    await before;
  }

  /** Commits what is in hand; one commit at a time, in order, and none after one that failed. */
  #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#committing = this.#committing.then(() => this.#commit());
    return this.#committing;
  }

  async #commit(): Promise<void> {
    this.#throwFailure();
    const position = this.#seen;
    if (!position || position.commit === this.#committed?.commit) return;
    const events = this.#events;
    this.#events = [];
    try {
      await this.#o.sink.commit({ events, logId: this.#logId, after: this.#committed }, position);
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
    this.#committed = position;
    this.#onCommit({ position, events: events.length, live: this.#live });
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }
}

const describe = (position: LogPosition | undefined): string =>
  position ? `position ${position.commit}` : 'the beginning';

import type { BerthEvent, LogPosition, Recorded } from '#domain/events/index.js';
import type { AllSubscriber } from '#events/event-log.js';
import type { Batch } from './batch-writer.js';

export interface BatchLimits {
  readonly maxEvents: number;
  /** A batch is written at the latest this long after its first event came, unless the one before is still at it. */
  readonly maxDelayMs: number;
  /** A log in which nothing matches moves the checkpoint this often, so that a restart need not read it again. */
  readonly idleCheckpointMs: number;
}

export const DEFAULT_LIMITS: BatchLimits = { maxEvents: 500, maxDelayMs: 20, idleCheckpointMs: 10_000 };

/**
 * Gathers events into batches: while one batch is written the next one fills; a full one holds the subscription back.
 * After a write has failed nothing more is written.
 */
export class BatchQueue implements AllSubscriber {
  readonly #write: (batch: Batch) => Promise<void>;
  readonly #limits: BatchLimits;
  readonly #hooks: { readonly onCaughtUp?: () => void; readonly onConnected?: (connected: boolean) => void };
  #events: Recorded<BerthEvent>[] = [];
  #through: LogPosition | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #room: (() => void) | undefined;
  #lastWriteAt = 0;
  #closed = false;
  #fail!: (error: unknown) => void;
  /** Rejects with the first write that failed; never fulfilled. */
  readonly failed: Promise<never>;

  constructor(
    write: (batch: Batch) => Promise<void>,
    limits: BatchLimits = DEFAULT_LIMITS,
    hooks: { readonly onCaughtUp?: () => void; readonly onConnected?: (connected: boolean) => void } = {},
  ) {
    this.#write = write;
    this.#limits = limits;
    this.#hooks = hooks;
    this.failed = new Promise((_resolve, reject) => (this.#fail = reject));
    this.failed.catch(() => undefined);
  }

  async onEvent(recorded: Recorded<BerthEvent>): Promise<void> {
    if (this.#closed) return;
    this.#events.push(recorded);
    this.#through = recorded.position;
    if (this.#events.length < this.#limits.maxEvents) {
      this.#timer ??= setTimeout(() => this.#begin(), this.#limits.maxDelayMs);
      return;
    }
    this.#begin();
    if (this.#events.length >= this.#limits.maxEvents) {
      await new Promise<void>((resolve) => (this.#room = resolve));
    }
  }

  onCheckpoint(position: LogPosition): void {
    if (this.#closed) return;
    this.#through = position;
    if (this.#events.length === 0 && performance.now() - this.#lastWriteAt > this.#limits.idleCheckpointMs) {
      this.#begin();
    }
  }

  /** Everything there is has come: no reason to wait for more. */
  onCaughtUp(): void {
    if (this.#events.length > 0) this.#begin();
    this.#hooks.onCaughtUp?.();
  }

  onConnected(connected: boolean): void {
    this.#hooks.onConnected?.(connected);
  }

  /** Writes what has come and takes nothing more. A write that failed before, or now, shows in `failed`. */
  async close(drain: boolean): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#room?.();
    if (!drain) this.#events = [];
    await this.#writing;
    if (drain && this.#events.length > 0) {
      this.#begin();
      await this.#writing;
    }
  }

  #begin(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#writing || this.#through === undefined) return;
    const batch = { events: this.#events, through: this.#through };
    this.#events = [];
    this.#through = undefined;
    this.#room?.();
    this.#room = undefined;
    this.#writing = this.#write(batch).then(
      () => {
        this.#writing = undefined;
        this.#lastWriteAt = performance.now();
        if (this.#events.length > 0 && !this.#closed) this.#begin();
      },
      (error: unknown) => {
        this.#closed = true;
        this.#events = [];
        this.#room?.();
        this.#writing = undefined;
        this.#fail(error);
      },
    );
  }
}

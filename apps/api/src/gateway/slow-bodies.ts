/** A body that brings nothing for this long is given up: its sender is gone, or holds the connection on purpose. */
export const BODY_STALLED_MS = 60_000;
const LOOK_EVERY_MS = 5000;

/** A body under way. */
export interface BodyProgress {
  lastByteAtMs: number;
  /** It has stalled. */
  giveUp(): void;
}

/** Watches bodies that are under way with one timer for all: nearly every body has come whole before it looks. */
export class SlowBodies {
  readonly #all = new Set<BodyProgress>();
  readonly #stalledMs: number;
  readonly #lookEveryMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(stalledMs = BODY_STALLED_MS, lookEveryMs = LOOK_EVERY_MS) {
    this.#stalledMs = stalledMs;
    this.#lookEveryMs = lookEveryMs;
  }

  watch(body: BodyProgress): void {
    this.#all.add(body);
    this.#timer ??= setInterval(() => this.#look(), this.#lookEveryMs).unref();
  }

  done(body: BodyProgress): void {
    this.#all.delete(body);
  }

  #look(): void {
    const now = performance.now();
    for (const body of [...this.#all]) {
      if (now - body.lastByteAtMs < this.#stalledMs) continue;
      this.#all.delete(body);
      body.giveUp();
    }
    if (this.#all.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** Waits between tries: doubled from `firstMs` to `mostMs`, each between half and all of it, so that many do not come at once. */
export class BackOff {
  readonly #firstMs: number;
  readonly #mostMs: number;
  readonly #random: () => number;
  #nextMs: number;

  constructor(options: { firstMs?: number; mostMs?: number; random?: () => number } = {}) {
    this.#firstMs = options.firstMs ?? 200;
    this.#mostMs = options.mostMs ?? 10_000;
    this.#random = options.random ?? Math.random;
    this.#nextMs = this.#firstMs;
  }

  /** Milliseconds to wait now; the next wait is twice as long. */
  next(): number {
    const wait = this.#nextMs * (0.5 + this.#random() / 2);
    this.#nextMs = Math.min(this.#nextMs * 2, this.#mostMs);
    return wait;
  }

  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}

/** Settles after `ms`, or at once when the signal is aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}

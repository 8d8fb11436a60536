interface Tries {
  readonly count: number;
  /** When the last answer that was promised goes out, ms. */
  readonly answeredAtMs: number;
}

/** A mistyped key is no attack. */
const FREE_TRIES = 3;
const FIRST_MS = 250;
const MOST_MS = 8000;
const FORGOTTEN_AFTER_MS = 600_000;
const MOST_ADDRESSES = 4096;

/** How long the answer to a wrong key waits: longer with every one from the same address, one after another. */
export class WrongKeys {
  readonly #now: () => number;
  readonly #tries = new Map<string, Tries>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Notes a wrong key. @returns milliseconds to wait before it is answered. */
  delayMs(address: string): number {
    const now = this.#now();
    const known = this.#tries.get(address);
    const past = known && now - known.answeredAtMs < FORGOTTEN_AFTER_MS ? known : undefined;
    const count = (past?.count ?? 0) + 1;
    const pauseMs = count <= FREE_TRIES ? 0 : Math.min(MOST_MS, FIRST_MS * 2 ** (count - FREE_TRIES - 1));
    const answeredAtMs = Math.min(Math.max(now, past?.answeredAtMs ?? now) + pauseMs, now + MOST_MS);
    // Map order is the order of last tries: the oldest goes first.
    this.#tries.delete(address);
    this.#tries.set(address, { count, answeredAtMs });
    for (const oldest of this.#tries.keys()) {
      if (this.#tries.size <= MOST_ADDRESSES) break;
      this.#tries.delete(oldest);
    }
    return answeredAtMs - now;
  }
}

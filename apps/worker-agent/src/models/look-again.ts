const DEBOUNCE_MS = 300;
/** A folder that changes all the time is looked at this often: a change is in the log within two seconds. */
const LONGEST_WAIT_MS = 1000;
/** Changes that no watch told: on a disk that is far away, or where the system has no watch left. */
const RESCAN_MS = 600_000;

/** When folders are looked at: soon after a change, however many more follow it, and every ten minutes. */
export class LookAgain {
  #soon: NodeJS.Timeout | undefined;
  #firstChangeMs: number | undefined;
  #stopped = false;
  readonly #every: NodeJS.Timeout;

  constructor(private readonly look: () => void) {
    this.#every = setInterval(look, RESCAN_MS).unref();
  }

  /** Something changed: more may follow at once. */
  changed(): void {
    const now = performance.now();
    this.#firstChangeMs ??= now;
    this.later(Math.max(0, Math.min(DEBOUNCE_MS, this.#firstChangeMs + LONGEST_WAIT_MS - now)));
  }

  /** Once, after so long; what was to come before is put off. */
  later(delayMs: number = DEBOUNCE_MS): void {
    clearTimeout(this.#soon);
    if (this.#stopped) return;
    this.#soon = setTimeout(() => {
      this.#firstChangeMs = undefined;
      this.look();
    }, delayMs).unref();
  }

  stop(): void {
    this.#stopped = true;
    clearInterval(this.#every);
    clearTimeout(this.#soon);
  }
}

/** Of two events that mean something only together (a call's start and its end) both are kept, or both are lost. */
export interface PairPart {
  readonly pair: string;
  readonly half: 'first' | 'last';
}

/** What is kept free for the second half of each pair that has begun. */
const KEPT_FOR_A_LAST_BYTES = 2048;

/** Decides what still fits into a spool of so many bytes. */
export class SpoolRoom {
  /** Pairs whose first half was taken and whose last is to come. */
  readonly #begun = new Set<string>();
  /** Pairs whose first half was lost: the last would be the end of nothing. */
  readonly #lost = new Set<string>();

  constructor(readonly maxBytes: number) {}

  takes(bytes: number, waitingBytes: number, part?: PairPart): boolean {
    const free = this.maxBytes - waitingBytes - bytes;
    if (part === undefined) return free >= this.#keptBytes;
    if (part.half === 'first') {
      if (free < this.#keptBytes + KEPT_FOR_A_LAST_BYTES) {
        this.lose(part);
        return false;
      }
      this.#begun.add(part.pair);
      return true;
    }
    if (this.#lost.delete(part.pair)) return false;
    return this.#begun.delete(part.pair) ? free >= 0 : free >= this.#keptBytes;
  }

  /** The event was not taken for another reason than its size. */
  lose(part: PairPart | undefined): void {
    if (part?.half === 'first') this.#lost.add(part.pair);
    else if (part) this.#lost.delete(part.pair);
  }

  get #keptBytes(): number {
    return this.#begun.size * KEPT_FOR_A_LAST_BYTES;
  }
}

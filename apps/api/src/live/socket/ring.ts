import type { LiveChange, LiveTopic } from '#domain/wire/index.js';

/** One change as it goes over the wire: made into text once, whoever gets it. */
export interface RingEntry {
  readonly commit: bigint;
  readonly topic: LiveTopic;
  readonly text: string;
}

/** The last changes, so that a client that comes back gets what it missed and nothing else. */
export class Ring {
  readonly #most: number;
  #entries: RingEntry[] = [];
  /** Everything after it is in the ring. */
  #from: bigint;

  /** @param from the position at which it begins. */
  constructor(from: bigint, most: number) {
    this.#from = from;
    this.#most = most;
  }

  add(commit: bigint, changes: readonly LiveChange[]): readonly RingEntry[] {
    const added = changes.map((change) => ({ commit, topic: change.topic, text: JSON.stringify(change) }));
    this.#entries.push(...added);
    // Half at a time: dropping one by one would move the whole array with each event.
    if (this.#entries.length > this.#most) this.#forget(Math.floor(this.#most / 2));
    return added;
  }

  /** @returns what came after a position; undefined when that is further back than it remembers. */
  after(position: bigint): readonly RingEntry[] | undefined {
    if (position < this.#from) return undefined;
    return this.#entries.slice(this.#firstAfter(position));
  }

  #forget(count: number): void {
    const last = this.#entries[count - 1];
    if (!last) return;
    // Never between the changes of one event: a client has all of them or none.
    this.#from = last.commit;
    this.#entries = this.#entries.slice(this.#firstAfter(last.commit));
  }

  #firstAfter(position: bigint): number {
    let [low, high] = [0, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const entry = this.#entries[middle];
      if (entry && entry.commit <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

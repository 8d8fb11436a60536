export interface RememberedEvent {
  readonly sid: number;
  readonly revision: number;
  readonly position: number;
}

/**
 * The ids of the newest events, so that a repeated append with `any` or `stream_exists` is answered and not written
 * twice. Typed arrays in a ring with an open-addressed index: 200,000 ids take about 8 MB and no garbage collection.
 * Of an id that was used in two streams the later one is known, as in the real server.
 */
export class IdMemory {
  readonly #words: Uint32Array;
  readonly #sids: Uint32Array;
  readonly #revisions: Uint32Array;
  readonly #positions: Float64Array;
  /** Ring slot + 1 per bucket, 0 when free. */
  readonly #index: Int32Array;
  readonly #mask: number;
  readonly #probe = new Uint32Array(4);
  #next = 0;
  #size = 0;

  constructor(readonly capacity = 200_000) {
    const buckets = 2 ** Math.ceil(Math.log2(capacity * 2));
    this.#words = new Uint32Array(capacity * 4);
    this.#sids = new Uint32Array(capacity);
    this.#revisions = new Uint32Array(capacity);
    this.#positions = new Float64Array(capacity);
    this.#index = new Int32Array(buckets);
    this.#mask = buckets - 1;
  }

  get size(): number {
    return this.#size;
  }

  remember(id: string, sid: number, revision: number, position: number): void {
    parseUuid(id, this.#probe);
    const slot = this.#next;
    if (this.#size === this.capacity) this.#forget(slot);
    else this.#size++;
    const [a, b, c, d] = this.#probe as unknown as readonly [number, number, number, number];
    this.#words[slot * 4] = a;
    this.#words[slot * 4 + 1] = b;
    this.#words[slot * 4 + 2] = c;
    this.#words[slot * 4 + 3] = d;
    this.#sids[slot] = sid;
    this.#revisions[slot] = revision;
    this.#positions[slot] = position;
    const bucket = this.#bucketOf(this.#probe, 0);
    this.#index[bucket] = slot + 1;
    this.#next = (slot + 1) % this.capacity;
  }

  /** Where the event with this id stands. */
  find(id: string): RememberedEvent | undefined {
    parseUuid(id, this.#probe);
    const slot = (this.#index[this.#bucketOf(this.#probe, 0)] ?? 0) - 1;
    if (slot < 0) return undefined;
    return {
      sid: this.#sids[slot] ?? 0,
      revision: this.#revisions[slot] ?? 0,
      position: this.#positions[slot] ?? 0,
    };
  }

  /** The bucket that holds the id, or the free one where it would go. */
  #bucketOf(words: Uint32Array, offset: number): number {
    let bucket = ((words[offset + 3] ?? 0) ^ Math.imul(words[offset] ?? 0, 0x9e3779b1)) & this.#mask;
    for (;;) {
      const slot = (this.#index[bucket] ?? 0) - 1;
      if (slot < 0) return bucket;
      const at = slot * 4;
      if (
        this.#words[at] === words[offset] &&
        this.#words[at + 1] === words[offset + 1] &&
        this.#words[at + 2] === words[offset + 2] &&
        this.#words[at + 3] === words[offset + 3]
      ) {
        return bucket;
      }
      bucket = (bucket + 1) & this.#mask;
    }
  }

  /** Removes the ring's oldest slot from the index, unless the id was used again since. */
  #forget(slot: number): void {
    let hole = this.#bucketOf(this.#words, slot * 4);
    if (this.#index[hole] !== slot + 1) return;
    this.#index[hole] = 0;
    // Entries behind the hole that were pushed over it must move up, or a later search would stop short of them.
    for (let bucket = (hole + 1) & this.#mask; ; bucket = (bucket + 1) & this.#mask) {
      const other = (this.#index[bucket] ?? 0) - 1;
      if (other < 0) return;
      this.#index[bucket] = 0;
      hole = this.#bucketOf(this.#words, other * 4);
      this.#index[hole] = other + 1;
    }
  }
}

/** `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` into four words. */
function parseUuid(id: string, target: Uint32Array): void {
  let word = 0;
  let digits = 0;
  for (let i = 0; i < 36; i++) {
    const code = id.charCodeAt(i);
    if (code === 45) continue;
    word = (word << 4) | (code < 58 ? code - 48 : (code | 32) - 87);
    if (++digits % 8 === 0) {
      target[digits / 8 - 1] = word >>> 0;
      word = 0;
    }
  }
}

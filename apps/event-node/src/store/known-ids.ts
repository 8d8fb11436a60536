import type { Query } from './database.js';
import { IdMemory, type RememberedEvent } from './id-memory.js';

export type IdRow = readonly [position: number, sid: number, revision: number, id: Buffer];

const SLICE = 2000;

/**
 * The ids that the node knows: those written since the start, and before them those of the log's newest events. The
 * older half is loaded in slices, newest first, so that opening a long log takes no longer than a short one.
 */
export class KnownIds {
  #recent: IdMemory;
  #older: IdMemory | undefined;
  /** Rows below this position are still to be loaded. */
  #loadBelow = Number.MAX_SAFE_INTEGER;
  #loaded = false;
  #stopped = false;

  /** `below` selects `position, sid, revision, id` below a position, newest first, at most so many. */
  constructor(
    readonly below: Query<IdRow>,
    readonly capacity = 200_000,
  ) {
    this.#recent = new IdMemory(capacity);
    this.#older = new IdMemory(capacity);
    this.#loadSlice();
    this.#loadInBackground();
  }

  get size(): number {
    return this.#recent.size + (this.#older?.size ?? 0);
  }

  remember(id: string, sid: number, revision: number, position: number): void {
    if (!Number.isSafeInteger(revision)) return;
    this.#recent.remember(id, sid, revision, position);
    if (this.#recent.size === this.capacity) {
      this.#older = undefined;
      this.#loaded = true;
    }
  }

  find(id: string, sid: number): RememberedEvent | undefined {
    const recent = this.#recent.find(id);
    if (recent) return recent.sid === sid ? recent : undefined;
    let older = this.#older?.find(id);
    // Only a repeated append needs what is not loaded yet, but which one is repeated is known only then.
    while (!older && !this.#loaded) {
      this.#loadSlice();
      older = this.#older?.find(id);
    }
    return older?.sid === sid ? older : undefined;
  }

  /** Forgets everything and starts again from the file: a commit failed. */
  reload(): void {
    this.#recent = new IdMemory(this.capacity);
    this.#older = new IdMemory(this.capacity);
    this.#loadBelow = Number.MAX_SAFE_INTEGER;
    const wasLoaded = this.#loaded;
    this.#loaded = false;
    if (wasLoaded) this.#loadInBackground();
  }

  stop(): void {
    this.#stopped = true;
  }

  #loadInBackground(): void {
    const step = () => {
      if (this.#loaded || this.#stopped) return;
      this.#loadSlice();
      setTimeout(step, 5).unref();
    };
    setTimeout(step, 5).unref();
  }

  #loadSlice(): void {
    const older = this.#older;
    if (this.#loaded || !older) return;
    const rows = this.below.all([this.#loadBelow, Math.min(SLICE, this.capacity - older.size)]);
    for (const [position, sid, revision, bytes] of rows) {
      this.#loadBelow = position;
      const id = bytes.toString('latin1');
      if (Number.isSafeInteger(revision) && !older.find(id)) older.remember(id, sid, revision, position);
    }
    this.#loaded = rows.length === 0 || older.size >= this.capacity;
  }
}

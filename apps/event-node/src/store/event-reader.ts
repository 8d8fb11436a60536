import { recordCreatedMs } from '../protocol/record.js';
import { query, type Query, type Sqlite } from './database.js';
import { StoredEvent } from './tail.js';
import { isMetadataStream, type StreamMetadata } from './stream-metadata.js';
import type { StreamStates } from './stream-states.js';

type Row = readonly [position: number, sid: number, revision: number, record: Buffer];

/** The part of a stream that readers may see: revisions from `first` on. */
export interface Visible {
  readonly sid: number;
  readonly first: number;
  readonly last: number;
}

const PAGE_BYTES = 512 * 1024;
const LARGEST_PAGE = 1000;
const SMALLEST_PAGE = 4;

/** Reads the log in pages of about half a MiB, so that no read holds the loop or the memory for long. */
export class EventReader {
  readonly #allForwards: Query<Row>;
  readonly #allBackwards: Query<Row>;
  readonly #streamForwards: Query<Row>;
  readonly #streamBackwards: Query<Row>;
  readonly #one: Query<Row>;
  readonly #ends: Query<[number | null]>;
  #averageBytes = 4096;

  constructor(
    db: Sqlite,
    readonly states: StreamStates,
    readonly now: () => number,
  ) {
    const columns = 'position, sid, revision, record';
    this.#allForwards = query(
      db,
      `select ${columns} from events where position > ? order by position limit ?`,
    );
    this.#allBackwards = query(
      db,
      `select ${columns} from events where position < ? order by position desc limit ?`,
    );
    this.#streamForwards = query(
      db,
      `select ${columns} from events where sid = ? and revision >= ? and revision <= ? order by revision limit ?`,
    );
    this.#streamBackwards = query(
      db,
      `select ${columns} from events where sid = ? and revision <= ? and revision >= ? order by revision desc limit ?`,
    );
    this.#one = query(db, `select ${columns} from events where sid = ? and revision = ?`);
    this.#ends = query(db, 'select max(position) from events');
  }

  /** The position of the newest event, -1 in an empty log. */
  endPosition(): number {
    return this.#ends.get([])?.[0] ?? -1;
  }

  allAfter(position: number, most = Infinity): StoredEvent[] {
    return this.#page(this.#allForwards.all([position, this.#limit(most)]));
  }

  allBefore(position: number, most = Infinity): StoredEvent[] {
    return this.#page(this.#allBackwards.all([position, this.#limit(most)]));
  }

  streamFrom(range: Visible, revision: number, most = Infinity): StoredEvent[] {
    const from = Math.max(revision, range.first);
    if (from > range.last) return [];
    return this.#page(this.#streamForwards.all([range.sid, from, range.last, this.#limit(most)]));
  }

  streamBackFrom(range: Visible, revision: number, most = Infinity): StoredEvent[] {
    const from = Math.min(revision, range.last);
    if (from < range.first) return [];
    return this.#page(this.#streamBackwards.all([range.sid, from, range.first, this.#limit(most)]));
  }

  /** One event, hidden or not. */
  event(sid: number, revision: number): StoredEvent | undefined {
    const row = this.#one.get([sid, revision]);
    return row && toEvent(row);
  }

  /** One event if readers of its stream may see it: what a link resolves to. */
  visibleEvent(stream: string, revision: number): StoredEvent | undefined {
    const state = this.states.get(stream);
    if (state.sid === 0 || state.tombstoned) return undefined;
    const range = this.visible(stream);
    return revision < range.first || revision > range.last ? undefined : this.event(range.sid, revision);
  }

  /** What `$tb`, `$maxCount` and `$maxAge` leave of a stream. */
  visible(stream: string): Visible {
    const { sid, last } = this.states.get(stream);
    const metadata = this.states.metadata(stream);
    const lower = firstByCount(metadata, last);
    const first =
      metadata.maxAgeSeconds === Infinity || isMetadataStream(stream)
        ? lower
        : this.#firstSince(sid, lower, last, this.now() - metadata.maxAgeSeconds * 1000);
    return { sid, first, last };
  }

  /**
   * The first revision that was created at the given time or later. Times never run backwards within a log, so it is found by
   * halving: a long stream with old events is not read from its start.
   */
  #firstSince(sid: number, lower: number, last: number, sinceMs: number): number {
    let low = lower;
    let high = last + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const [next] = this.#streamForwards.all([sid, middle, last, 1]);
      if (!next || recordCreatedMs(next[3]) >= sinceMs) high = middle;
      else low = next[2] + 1;
    }
    return low;
  }

  #limit(most: number): number {
    const fitting = Math.floor(PAGE_BYTES / this.#averageBytes);
    return Math.min(most, Math.max(SMALLEST_PAGE, Math.min(LARGEST_PAGE, fitting)));
  }

  #page(rows: readonly Row[]): StoredEvent[] {
    if (rows.length === 0) return [];
    let bytes = 0;
    const events = rows.map((row) => {
      bytes += row[3].length;
      return toEvent(row);
    });
    // Grows at once and shrinks slowly: a page of large events must not be followed by a thousand of them.
    const average = bytes / rows.length;
    this.#averageBytes = Math.max(64, average, this.#averageBytes * 0.7);
    return events;
  }
}

const toEvent = (row: Row): StoredEvent => new StoredEvent(row[0], row[1], row[2], row[3]);

export function firstByCount(metadata: StreamMetadata, last: number): number {
  const byCount = metadata.maxCount === Infinity ? 0 : last - metadata.maxCount + 1;
  return Math.max(0, metadata.truncateBefore, byCount);
}

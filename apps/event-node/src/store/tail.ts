import { recordStream, recordType } from '../protocol/record.js';

/** An event as subscriptions and reads see it. */
export class StoredEvent {
  #stream: string | undefined;
  #type: string | undefined;
  constructor(
    readonly position: number,
    readonly sid: number,
    readonly revision: number,
    readonly record: Buffer,
  ) {}
  get stream(): string {
    return (this.#stream ??= recordStream(this.record));
  }
  get type(): string {
    return (this.#type ??= recordType(this.record));
  }
}

const KEPT_EVENTS = 4096;
const KEPT_BYTES = 8 * 1024 * 1024;

/**
 * The newest committed events, in memory: live subscribers are fed from here, and only who fell behind reads SQL. Each
 * subscriber has a cursor of its own, so a slow one loses nothing and needs no buffer.
 */
export class Tail {
  #events: StoredEvent[] = [];
  /** Index of the first event still kept. */
  #first = 0;
  #bytes = 0;
  readonly #waiting = new Set<() => void>();

  /** Everything behind this position (exclusive) is in memory. */
  #completeAfter: number;
  #end: number;

  constructor(lastPosition: number) {
    this.#completeAfter = lastPosition;
    this.#end = lastPosition;
  }

  /** The position of the newest event, -1 in an empty log. */
  get end(): number {
    return this.#end;
  }

  push(events: readonly StoredEvent[]): void {
    for (const event of events) {
      this.#events.push(event);
      this.#bytes += event.record.length;
      this.#end = event.position;
    }
    while (this.#events.length - this.#first > KEPT_EVENTS || this.#bytes > KEPT_BYTES) {
      const dropped = this.#events[this.#first++];
      if (!dropped) break;
      this.#bytes -= dropped.record.length;
      this.#completeAfter = dropped.position;
    }
    if (this.#first > KEPT_EVENTS) {
      this.#events = this.#events.slice(this.#first);
      this.#first = 0;
    }
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Events after the position, or undefined when some of them are no longer in memory. */
  after(position: number): readonly StoredEvent[] | undefined {
    if (position < this.#completeAfter) return undefined;
    let low = this.#first;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle]?.position ?? 0) > position) high = middle;
      else low = middle + 1;
    }
    return this.#events.slice(low);
  }

  /** Calls back once, at the next commit; the answer takes the wish back. */
  onNext(wake: () => void): () => void {
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }
}

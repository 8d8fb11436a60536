import { invalid } from '../errors.js';
import { CAUGHT_UP_FRAME, checkpointFrame, confirmationFrame } from '../protocol/read-frames.js';
import type { ReadRequest } from '../protocol/read-request.js';
import type { StoredEvent } from '../store/tail.js';
import type { NodeContext } from './context.js';
import { framesFor } from './event-frames.js';
import type { Outlet } from './outlet.js';

export interface SubscriptionRun {
  readonly context: NodeContext;
  readonly outlet: Outlet;
  readonly request: ReadRequest;
  /** Throws when the subscriber's right is gone. */
  readonly mayRead: () => void;
  readonly id: string;
}

/** A catch-up subscription to the whole log. Its cursor is a position: everything up to it has been considered. */
export class AllSubscription {
  readonly #frame: (event: StoredEvent) => Buffer;
  #cursor: number;
  #considered = 0;
  #lastCheckpoint = -1;
  #rightsSeen: number;

  constructor(readonly what: SubscriptionRun) {
    const { request, context } = what;
    const { store } = context;
    this.#frame = framesFor(request, store.reader);
    this.#rightsSeen = store.states.metadataVersion;
    if (request.from === 'start') this.#cursor = -1;
    else if (request.from === 'end') this.#cursor = store.tail.end;
    else this.#cursor = request.from;
    if (this.#cursor > store.nextPosition) {
      throw invalid(
        `The subscription starts at position ${this.#cursor}, and the log ends at ${store.nextPosition}: the checkpoint belongs to another log.`,
      );
    }
    this.#lastCheckpoint = this.#cursor;
  }

  async run(): Promise<void> {
    const { outlet, context, id, request } = this.what;
    const { store } = context;
    outlet.write(confirmationFrame(id));
    let live = false;
    while (!outlet.isOver()) {
      this.#checkRights();
      const fromTail = store.tail.after(this.#cursor);
      const events = fromTail ?? store.reader.allAfter(this.#cursor);
      if (events.length > 0) {
        if (!fromTail) live = false;
        await this.#send(events);
        if (!fromTail) await outlet.breathe();
        continue;
      }
      if (!live) {
        live = true;
        if (request.filter) this.#checkpoint();
        outlet.write(CAUGHT_UP_FRAME);
      }
      await outlet.sleep((wake) => store.tail.onNext(wake));
    }
  }

  async #send(events: readonly StoredEvent[]): Promise<void> {
    const { outlet, request } = this.what;
    const { filter } = request;
    for (const event of events) {
      let room = true;
      if (!filter || filter.matches(event)) room = outlet.write(this.#frame(event));
      this.#cursor = event.position;
      if (filter && ++this.#considered >= filter.checkpointEvery) this.#checkpoint();
      if (!room) await outlet.drained();
      if (outlet.isOver()) return;
    }
  }

  /** Says how far the filter has looked, strictly ascending. */
  #checkpoint(): void {
    this.#considered = 0;
    if (this.#cursor <= this.#lastCheckpoint) return;
    this.#lastCheckpoint = this.#cursor;
    this.what.outlet.write(checkpointFrame(this.#cursor));
  }

  #checkRights(): void {
    const { metadataVersion } = this.what.context.store.states;
    if (metadataVersion === this.#rightsSeen) return;
    this.#rightsSeen = metadataVersion;
    this.what.mayRead();
  }
}

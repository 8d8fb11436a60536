import { deleted } from '../errors.js';
import { CAUGHT_UP_FRAME, confirmationFrame } from '../protocol/read-frames.js';
import { baseStreamOf, isMetadataStream, isSoftDeleted } from '../store/stream-metadata.js';
import type { StoredEvent } from '../store/tail.js';
import { TOMBSTONE_REVISION } from '../protocol/record.js';
import { framesFor } from './event-frames.js';
import type { SubscriptionRun } from './subscribe-all.js';

/** A catch-up subscription to one stream, which may not exist yet. Its cursor is the last revision sent. */
export class StreamSubscription {
  readonly #stream: string;
  readonly #frame: (event: StoredEvent) => Buffer;
  #cursor: number;
  /** While live: the log has been looked through up to here. */
  #position = -1;
  #rightsSeen: number;

  constructor(readonly what: SubscriptionRun & { readonly stream: string }) {
    const { request, context, stream } = what;
    const { states, reader } = context.store;
    this.#stream = stream;
    this.#frame = framesFor(request, reader);
    this.#rightsSeen = states.metadataVersion;
    if (request.from === 'start') this.#cursor = -1;
    else this.#cursor = request.from === 'end' ? states.get(stream).last : request.from;
  }

  async run(): Promise<void> {
    const { outlet, context, id } = this.what;
    const { store } = context;
    if (this.#isDead()) throw deleted(this.#stream);
    outlet.write(confirmationFrame(id));
    let live = false;
    while (!outlet.isOver()) {
      this.#checkRights();
      const recent = live ? store.tail.after(this.#position) : undefined;
      if (!recent) {
        live = await this.#catchUp();
        if (live) outlet.write(CAUGHT_UP_FRAME);
        continue;
      }
      if (recent.length > 0) await this.#sendLive(recent);
      else await outlet.sleep((wake) => store.tail.onNext(wake));
    }
  }

  /** Sends one page from the file; true when there was nothing more. */
  async #catchUp(): Promise<boolean> {
    const { outlet, context } = this.what;
    const { store } = context;
    const end = store.tail.end;
    const range = store.reader.visible(this.#stream);
    const hidden = isSoftDeleted(store.states.metadata(this.#stream));
    const page = hidden || range.sid === 0 ? [] : store.reader.streamFrom(range, this.#cursor + 1);
    if (page.length === 0) {
      if (this.#isDead()) throw deleted(this.#stream);
      this.#position = end;
      return true;
    }
    for (const event of page) {
      const room = outlet.write(this.#frame(event));
      this.#cursor = event.revision;
      if (!room) await outlet.drained();
      if (outlet.isOver()) return false;
    }
    await outlet.breathe();
    return false;
  }

  async #sendLive(events: readonly StoredEvent[]): Promise<void> {
    const { outlet, context } = this.what;
    const { sid } = context.store.states.get(this.#stream);
    for (const event of events) {
      this.#position = event.position;
      if (event.sid !== sid || event.revision <= this.#cursor) continue;
      const room = outlet.write(this.#frame(event));
      this.#cursor = event.revision;
      if (event.revision === TOMBSTONE_REVISION) throw deleted(this.#stream);
      if (!room) await outlet.drained();
      if (outlet.isOver()) return;
    }
  }

  #isDead(): boolean {
    const { states } = this.what.context.store;
    const base = isMetadataStream(this.#stream) ? baseStreamOf(this.#stream) : this.#stream;
    return states.get(base).tombstoned;
  }

  #checkRights(): void {
    const { metadataVersion } = this.what.context.store.states;
    if (metadataVersion === this.#rightsSeen) return;
    this.#rightsSeen = metadataVersion;
    this.what.mayRead();
  }
}

import { NO_SLOT } from '#runtime/slot-list.js';
import type { TicketView } from '../admission/port.js';
import { type Alarm, Alarms } from './alarms.js';
import type { CallClient } from './client.js';

/** A streaming call has its head after 10 s, whatever it still waits for: a look at the alarms may be a quarter late. */
const HEAD_BY_MS = 9750;
const COMMENT_EVERY_MS = 10_000;
/** Node's fetch gives up after 300 s without a head; each interim answer starts its clock anew. */
const INTERIM_EVERY_MS = 60_000;
const WAITING = new Alarms();

export interface HoldOptions {
  readonly client: CallClient;
  readonly stream: boolean;
  readonly modelName: string;
  readonly receivedAtMs: number;
  readonly now: () => number;
  /** Fraction of the load that is done, when it is known. */
  readonly progress: (view: TicketView) => number | undefined;
  /** HTTP/1.1 callers alone know interim answers. */
  readonly interim: boolean;
  /** One for all calls, when left out. */
  readonly alarms?: Alarms;
}

/**
 * Keeps a caller that waits: a stream by comments that say how far its load is, another by `102 Processing`. Ends with
 * the engine's first byte.
 */
export class Hold implements Alarm {
  slot = NO_SLOT;
  dueAtMs = 0;
  readonly #o: HoldOptions;
  readonly #alarms: Alarms;
  #view: TicketView | undefined;

  constructor(options: HoldOptions) {
    this.#o = options;
    this.#alarms = options.alarms ?? WAITING;
    const { stream, receivedAtMs, now } = options;
    if (stream) this.#in(HEAD_BY_MS - (now() - receivedAtMs));
    else if (options.interim) this.#in(INTERIM_EVERY_MS);
  }

  /** The ticket moved on. A placement that is decided opens the stream: what is refused was refused before. */
  onView(view: TicketView): void {
    this.#view = view;
    if (this.#o.stream && view.phase === 'loading' && !this.#o.client.headSent) this.#open();
  }

  /** The call has its slot. */
  admitted(): void {
    this.#view = undefined;
  }

  stop(): void {
    this.#alarms.clear(this);
  }

  ring(): void {
    if (this.#o.stream) this.#open();
    else this.#processing();
  }

  #open(): void {
    const { client } = this.#o;
    if (client.left) return;
    if (!client.headSent) client.streamHead();
    client.comment(this.#state());
    this.#in(COMMENT_EVERY_MS);
  }

  #processing(): void {
    const { client } = this.#o;
    if (client.left || client.headSent) return;
    client.res.writeProcessing();
    this.#in(INTERIM_EVERY_MS);
  }

  #state(): string {
    const { modelName, progress } = this.#o;
    const view = this.#view;
    if (!view) return `working ${modelName}`;
    if (view.phase !== 'loading') return `queued ${modelName} place ${view.place}`;
    const done = progress(view);
    return done === undefined ? `loading ${modelName}` : `loading ${modelName} ${Math.round(done * 100)}%`;
  }

  #in(ms: number): void {
    this.dueAtMs = performance.now() + ms;
    this.#alarms.set(this);
  }
}

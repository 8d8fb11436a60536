import type { ReadableSubscription, ResolvedEvent } from '@eventstore/db-client';
import { performance } from 'node:perf_hooks';
import type { BerthEvent, LogPosition, Recorded } from '#domain/events/index.js';
import { BackOff, pause } from './back-off.js';
import type { Decoder, RawRecorded } from './codec.js';
import type { Subscription } from './event-log.js';
import { isFinal, messageOf, readFailure } from './log-failures.js';

/** What stands in a subscription's queue between its events, so that it is handled in its place. */
type Marker =
  | { readonly marker: 'caught-up' }
  | { readonly marker: 'checkpoint'; readonly position: LogPosition }
  | { readonly marker: 'confirmed' };

export type Opened = ReadableSubscription<ResolvedEvent>;

export interface Source<Cursor> {
  /** Named in messages: `worker-…`, `the whole log`. */
  readonly name: string;
  open(after: Cursor | undefined, onCheckpoint: (position: LogPosition) => void): Opened;
  cursorOf(raw: RawRecorded): Cursor;
  cursorAt?(checkpoint: LogPosition): Cursor;
}

export interface Handlers<E extends BerthEvent> {
  onEvent(recorded: Recorded<E>): void | Promise<void>;
  onCaughtUp?(): void | Promise<void>;
  onCheckpoint?(position: LogPosition): void | Promise<void>;
  onConnected?(connected: boolean): void;
}

export interface Surroundings {
  readonly decoder: Decoder;
  /** UUID of the log behind the connection as it is now. */
  readonly identity: () => Promise<string>;
  readonly warn: (message: string) => void;
  readonly backOff?: BackOff;
}

/** Runs `then` when the handler is done, at once where it answered nothing to wait for. */
function settled(handling: void | Promise<void>, then: () => void): Promise<void> | undefined {
  // A handler written as an arrow may answer anything.
  if (handling instanceof Promise) return handling.then(then);
  then();
  return undefined;
}

/** A connection that held this long was healthy: the next break is waited for as little as the first. */
const HEALTHY_MS = 10_000;
const CANCEL_WITHIN_MS = 1000;

class HandlerFailure extends Error {}
class AnotherLog extends Error {}

/**
 * Follows a source for as long as it is wanted. A break is waited out and the subscription opened again after the last
 * event that was handled; so each event is handled once, and one at a time. Ends only by `stop`, by a handler that
 * throws, by a refusal of the server, or when the address answers with another log.
 */
export class ResumingSubscription<Cursor, E extends BerthEvent> implements Subscription {
  readonly ended: Promise<void>;
  readonly #source: Source<Cursor>;
  readonly #handlers: Handlers<E>;
  readonly #around: Surroundings;
  readonly #stopping = new AbortController();
  readonly #backOff: BackOff;
  #after: Cursor | undefined;
  #open: Opened | undefined;
  #connected: boolean | undefined;
  #logId: string | undefined;

  constructor(
    source: Source<Cursor>,
    handlers: Handlers<E>,
    around: Surroundings,
    after: Cursor | undefined,
  ) {
    this.#source = source;
    this.#handlers = handlers;
    this.#around = around;
    this.#after = after;
    this.#backOff = around.backOff ?? new BackOff();
    this.ended = this.#run();
    // Whoever does not look at `ended` must not lose the process by it; the reason is logged.
    this.ended.catch((error: unknown) =>
      around.warn(`The subscription to ${source.name} is over: ${messageOf(error)}`),
    );
  }

  get name(): string {
    return this.#source.name;
  }

  get isStanding(): boolean {
    return !this.#stopped();
  }

  /** Settles when the handler at work, if any, has returned: do not await it inside a handler. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const opened = this.#open;
    opened?.unsubscribe().catch(() => undefined);
    // A call that is still being opened cannot be cancelled yet.
    const late = setTimeout(() => opened?.destroy(), CANCEL_WITHIN_MS);
    await this.ended.catch(() => undefined);
    clearTimeout(late);
  }

  async #run(): Promise<void> {
    while (!this.#stopped()) {
      const openedAt = performance.now();
      let reason = 'the server ended it';
      try {
        await this.#sameLog();
        if (this.#stopped()) break;
        await this.#follow();
      } catch (error) {
        if (this.#stopped() && !(error instanceof HandlerFailure)) break;
        this.#tell(false);
        if (error instanceof HandlerFailure) throw error.cause;
        if (error instanceof AnotherLog) throw error;
        if (isFinal(error)) throw readFailure(this.#source.name, error);
        reason = messageOf(error);
      }
      if (this.#stopped()) break;
      this.#tell(false);
      if (performance.now() - openedAt > HEALTHY_MS) this.#backOff.reset();
      const waitMs = this.#backOff.next();
      this.#around.warn(
        `The subscription to ${this.#source.name} broke (${reason}); opening it again in ${Math.round(waitMs)} ms.`,
      );
      await pause(waitMs, this.#stopping.signal);
    }
  }

  /** A cursor into one log says nothing about another. */
  async #sameLog(): Promise<void> {
    const id = await this.#around.identity();
    this.#logId ??= id;
    if (id !== this.#logId)
      throw new AnotherLog(
        `The address now answers with another event log (${id}, before ${this.#logId}): what was folded from the old one must be folded again.`,
      );
  }

  async #follow(): Promise<void> {
    const put = (marker: Marker) => void opened.push(marker);
    const opened = this.#source.open(this.#after, (position) => put({ marker: 'checkpoint', position }));
    this.#open = opened;
    // Errors are also emitted after the iteration is over; without a listener they would end the process.
    opened.on('error', () => undefined);
    opened.on('confirmation', () => put({ marker: 'confirmed' }));
    opened.on('caughtUp', () => put({ marker: 'caught-up' }));
    try {
      // Markers are pushed from within the stream's own transform, so they keep their place among the events.
      const items = opened.iterator({ destroyOnReturn: false }) as AsyncIterable<ResolvedEvent | Marker>;
      for await (const item of items) {
        if (this.#stopped()) return;
        const handling = this.#handle(item);
        // Most handlers only note what they see; a turn of the loop for each would be most of their cost.
        if (handling) await handling;
      }
    } finally {
      this.#open = undefined;
      opened.unsubscribe().catch(() => undefined);
      // What had already come must flow off, else the client keeps the call for ever.
      opened.resume();
    }
  }

  #handle(item: ResolvedEvent | Marker): Promise<void> | undefined {
    const failed = (error: unknown): never => {
      throw new HandlerFailure('a handler failed', { cause: error });
    };
    try {
      return this.#dispatch(item)?.catch(failed);
    } catch (error) {
      return failed(error);
    }
  }

  #dispatch(item: ResolvedEvent | Marker): Promise<void> | undefined {
    if (!('marker' in item)) return this.#event(item);
    switch (item.marker) {
      case 'confirmed':
        this.#tell(true);
        return undefined;
      case 'caught-up':
        return settled(this.#handlers.onCaughtUp?.(), () => undefined);
      case 'checkpoint': {
        const cursor = this.#source.cursorAt?.(item.position);
        return settled(this.#handlers.onCheckpoint?.(item.position), () => {
          if (cursor !== undefined) this.#after = cursor;
        });
      }
    }
  }

  #event(resolved: ResolvedEvent): Promise<void> | undefined {
    const raw: RawRecorded | undefined = resolved.event;
    if (!raw) return undefined;
    const recorded = this.#around.decoder.decode<E>(raw);
    return settled(recorded && this.#handlers.onEvent(recorded), () => {
      this.#after = this.#source.cursorOf(raw);
    });
  }

  #stopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  #tell(connected: boolean): void {
    if (this.#connected === connected) return;
    this.#connected = connected;
    this.#handlers.onConnected?.(connected);
  }
}

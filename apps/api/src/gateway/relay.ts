import type { IncomingHttpHeaders } from 'node:http';
import type { BerthError } from '#domain/errors.js';
import { MIB } from '#domain/units.js';
import type { CallClient } from './client.js';
import type { UpstreamController, UpstreamHandler } from './engine-connection.js';
import { downstreamHeaders, STREAM_HEADERS } from './headers.js';
import { mapEngineError } from './engine-errors.js';
import { NativeTap } from './native-tap.js';
import { StreamTap, type Tap } from './stream-tap.js';
import { type Counted, countAnswer, NOTHING_COUNTED } from './usage.js';

/** What became of one request to an engine. */
export type RelayEnd =
  | { readonly kind: 'answered'; readonly counted: Counted }
  /** The engine refused; nothing of it has reached the caller yet. */
  | {
      readonly kind: 'engine-error';
      readonly error: BerthError;
      readonly loading: boolean;
      /** It has no such route. */
      readonly missing?: true;
    }
  /** The engine was gone before it had said anything. */
  | { readonly kind: 'silent'; readonly why: string; readonly refusedConnection: boolean }
  /** The engine was gone, or ended its answer too early, after the caller had some of it. */
  | { readonly kind: 'broken'; readonly why: string; readonly counted: Counted }
  | { readonly kind: 'left'; readonly counted: Counted };

export interface RelayOptions {
  readonly client: CallClient;
  readonly stream: boolean;
  readonly dropUsageChunk: boolean;
  /** The engine tells its answer in the caller's protocol. */
  readonly native: boolean;
  /** As it came, to tell the caller's fault from the engine's. */
  readonly body: Buffer;
  readonly onFirstByte: () => void;
  /** Called once. */
  readonly onEnd: (end: RelayEnd) => void;
}

/** An answer larger than this is passed on uncounted. */
const COUNTED_ANSWER_BYTES = 8 * MIB;
const ERROR_ANSWER_BYTES = 256 * 1024;
const MISSING: ReadonlySet<number> = new Set([404, 405, 501]);
/** How long a caller may take nothing of its answer. */
const CALLER_STALLED_MS = 120_000;
export const LEFT = new Error('the caller left');

type Mode = 'silent' | 'error' | 'stream' | 'whole';

/** What an engine answers is written on as it comes; the engine is paused while the caller cannot take more. */
export class Relay implements UpstreamHandler {
  readonly #o: RelayOptions;
  #tapped: Tap | undefined;
  readonly #kept: Buffer[] = [];
  /** A whole answer that came in one piece: head and body go out in one write. */
  #only: Buffer | undefined;
  #keptBytes = 0;
  #mode: Mode = 'silent';
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #controller: UpstreamController | undefined;
  #over = false;
  #said = false;
  #stalled = false;

  constructor(options: RelayOptions) {
    this.#o = options;
  }

  /** Made for the answers that need it: whole ones do not. */
  get #tap(): Tap {
    this.#tapped ??= this.#o.native ? new NativeTap() : new StreamTap(this.#o);
    return this.#tapped;
  }

  /** Stops the engine's work. */
  abort(reason: Error): void {
    if (!this.#over) this.#controller?.abort(reason);
  }

  onRequestStart(controller: UpstreamController): void {
    this.#controller = controller;
    if (this.#o.client.left) controller.abort(LEFT);
  }

  onResponseStart(controller: UpstreamController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    if (status >= 400) this.#mode = 'error';
    else if (isEventStream(headers)) this.#mode = 'stream';
    // The head of an event stream is out: nothing else can follow it.
    else if (this.#o.client.headSent) controller.abort(new Error('it did not stream its answer'));
    else this.#mode = 'whole';
  }

  onResponseData(controller: UpstreamController, chunk: Buffer): void {
    switch (this.#mode) {
      case 'stream': {
        const out = this.#tap.push(chunk);
        if (out) this.#write(controller, out);
        return;
      }
      case 'whole':
        this.#keep(chunk, COUNTED_ANSWER_BYTES);
        if (!this.#said && this.#headers['content-length'] === String(chunk.length)) this.#only = chunk;
        else this.#write(controller, chunk);
        return;
      case 'error':
        this.#keep(chunk, ERROR_ANSWER_BYTES);
        return;
      case 'silent':
        return;
    }
  }

  onResponseEnd(): void {
    const { client } = this.#o;
    switch (this.#mode) {
      case 'error': {
        const error = mapEngineError(this.#status, Buffer.concat(this.#kept), this.#o.body);
        const missing = MISSING.has(this.#status) ? ({ missing: true } as const) : {};
        this.#end({ kind: 'engine-error', error, loading: this.#status === 503, ...missing });
        return;
      }
      case 'stream': {
        const rest = this.#tap.end();
        if (rest) {
          this.#writeHead();
          client.write(rest);
        }
        if (!this.#tap.done) {
          this.#fail(this.#tap.engineError ?? 'it ended its stream before it was complete');
          return;
        }
        client.end();
        this.#end({ kind: 'answered', counted: this.#tap.counted });
        return;
      }
      case 'whole': {
        this.#writeHead();
        if (this.#only) this.#o.onFirstByte();
        const error = client.end(this.#only);
        if (error) {
          this.#end({ kind: 'engine-error', error, loading: false });
          return;
        }
        const whole = this.#keptBytes <= COUNTED_ANSWER_BYTES;
        this.#end({
          kind: 'answered',
          counted: whole ? countAnswer(this.#only ?? Buffer.concat(this.#kept)) : NOTHING_COUNTED,
        });
        return;
      }
      case 'silent':
        this.#fail('it closed the connection without an answer');
        return;
    }
  }

  onResponseError(_controller: UpstreamController, error: Error): void {
    if (this.#o.client.left) {
      this.#end({ kind: 'left', counted: this.#tap.counted });
      return;
    }
    this.#fail(error.message, (error as NodeJS.ErrnoException).code === 'ECONNREFUSED');
  }

  #fail(why: string, refusedConnection = false): void {
    if (this.#said) this.#end({ kind: 'broken', why, counted: this.#tap.counted });
    else if (this.#tap.engineError !== undefined) {
      const body = Buffer.from(JSON.stringify({ error: { message: why } }));
      this.#end({ kind: 'engine-error', error: mapEngineError(500, body, this.#o.body), loading: false });
    } else this.#end({ kind: 'silent', why, refusedConnection });
  }

  #keep(chunk: Buffer, limit: number): void {
    this.#keptBytes += chunk.length;
    if (this.#keptBytes <= limit) this.#kept.push(chunk);
    else if (this.#mode === 'whole') this.#kept.length = 0;
  }

  #write(controller: UpstreamController, out: Buffer): void {
    const { client } = this.#o;
    if (!this.#said) {
      this.#writeHead();
      this.#o.onFirstByte();
    }
    if (!client.write(out)) this.#stall(controller);
  }

  /** A caller that takes nothing any more must not hold the engine's slot for ever. */
  #stall(controller: UpstreamController): void {
    if (this.#stalled) return;
    this.#stalled = true;
    controller.pause();
    const { res } = this.#o.client;
    const timer = setTimeout(() => res.destroy(), CALLER_STALLED_MS);
    const over = () => {
      clearTimeout(timer);
      this.#stalled = false;
      // A long answer to a slow caller stalls thousands of times: nothing of one may stay.
      res.off('close', over);
      res.off('drain', drained);
    };
    const drained = () => {
      over();
      controller.resume();
    };
    res.on('close', over);
    res.on('drain', drained);
  }

  /** Held until the first byte is there: until then another engine could still answer. */
  #writeHead(): void {
    if (this.#said) return;
    this.#said = true;
    const { client } = this.#o;
    if (client.headSent) return;
    if (this.#mode === 'stream') {
      client.head(this.#status, STREAM_HEADERS);
      return;
    }
    const headers = downstreamHeaders(this.#headers);
    const length = this.#headers['content-length'];
    if (length !== undefined) headers.push(['content-length', length]);
    client.head(this.#status, headers);
  }

  #end(end: RelayEnd): void {
    if (this.#over) return;
    this.#over = true;
    this.#o.onEnd(end);
  }
}

const isEventStream = (headers: IncomingHttpHeaders): boolean =>
  headers['content-type']?.startsWith('text/event-stream') === true;

import type { ServerResponse } from 'node:http';
import type { BerthError } from '#domain/errors.js';
import { errorFrame, sendError } from './answers.js';
import { STREAM_HEADERS } from './headers.js';

const NOT_ASCII = /[^\x20-\x7e]/;
const EACH_NOT_ASCII = /[^\x20-\x7e]/gu;

/** Up to here an answer's head and body are copied together. */
const ONE_WRITE_BYTES = 16 * 1024;

/**
 * The caller's side of one call: the head, what was written, and whether the caller is still there. `close` of the
 * response tells that a caller left; the request's own fires as soon as the body has been read.
 */
export class CallClient {
  readonly res: ServerResponse;
  bytesOut = 0;
  #left = false;
  /** Names and values in turn. */
  readonly #headers: string[] = [];
  /** Called when the caller leaves. */
  whenLeft: (() => void) | undefined;

  constructor(res: ServerResponse) {
    this.res = res;
    res.on('close', () => {
      if (res.writableFinished) return;
      this.#left = true;
      this.whenLeft?.();
    });
  }

  get left(): boolean {
    return this.#left;
  }

  get headSent(): boolean {
    return this.res.headersSent;
  }

  /** The status that the caller got; 499 when it left before there was one. */
  get status(): number {
    return this.headSent ? this.res.statusCode : 499;
  }

  /** Goes out with the head, whichever it will be. */
  header(name: string, value: string): void {
    // A header's value is ASCII; a model's name may be anything.
    const ascii = NOT_ASCII.test(value) ? value.replace(EACH_NOT_ASCII, encodeURIComponent) : value;
    this.#headers.push(name, ascii);
  }

  head(status: number, headers: readonly (readonly [string, string | string[]])[]): void {
    const all: (string | string[])[] = [...this.#headers];
    for (const [name, value] of headers) all.push(name, value);
    this.res.writeHead(status, all as string[]);
  }

  /** The head of an event stream, sent before the engine has said anything. */
  streamHead(): void {
    this.head(200, STREAM_HEADERS);
    this.res.flushHeaders();
  }

  /** False: wait for `drain` before more is written. */
  write(chunk: Buffer): boolean {
    this.bytesOut += chunk.length;
    return this.res.write(chunk);
  }

  comment(text: string): void {
    if (this.#left || this.res.writableEnded) return;
    this.res.write(`: ${text}\n\n`);
  }

  /** With the last of it, if it is in hand. @returns why the answer cannot be given; then nothing of it was sent. */
  end(last?: Buffer): BerthError | undefined {
    if (last) this.bytesOut += last.length;
    // As a string of bytes it goes out in one buffer with the head: two buffers cost more than the copy.
    if (last && last.length <= ONE_WRITE_BYTES) this.res.end(last.toString('latin1'), 'latin1');
    else this.res.end(last);
    return undefined;
  }

  /** An answer of our own, whole. */
  answer(headers: readonly (readonly [string, string])[], bytes: Buffer): void {
    this.head(200, headers);
    this.write(bytes);
    this.end();
  }

  /**
   * The error as its protocol says it: JSON with its status before the head; after it an error frame and then a
   * destroyed socket, since a clean end would pass for a whole answer with most clients.
   */
  fail(error: BerthError, stream: boolean): void {
    const { res } = this;
    if (this.#left || res.writableEnded) return;
    if (!res.headersSent) {
      this.bytesOut += this.sendFailure(error, pairs(this.#headers));
      return;
    }
    if (!stream) {
      res.destroy();
      return;
    }
    const frame = Buffer.from(this.failureFrame(error));
    this.bytesOut += frame.length;
    res.write(frame, () => res.destroy());
  }

  protected sendFailure(error: BerthError, headers: readonly (readonly [string, string])[]): number {
    return sendError(this.res, error, headers);
  }

  protected failureFrame(error: BerthError): string {
    return errorFrame(error);
  }
}

const pairs = (flat: readonly string[]): [string, string][] =>
  flat.flatMap((name, at): [string, string][] => (at % 2 === 0 ? [[name, flat[at + 1] ?? '']] : []));

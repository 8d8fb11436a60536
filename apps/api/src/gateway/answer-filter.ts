import type { ServerResponse } from 'node:http';
import type { BerthError } from '#domain/errors.js';
import type { Result } from '#domain/result.js';
import { envelope, errorFrame, sendFailure } from './answers.js';
import { CallClient } from './client.js';
import { STREAM_HEADERS } from './headers.js';

type Headers = readonly (readonly [string, string | string[]])[];

/** How a protocol says that a call failed. */
export interface ErrorShape {
  /** Before the head: the JSON of the answer. */
  readonly body: (error: BerthError, callId: string) => unknown;
  /** After the head of a stream. */
  readonly frame: (error: BerthError, callId: string) => string;
}

export const OPENAI_ERRORS: ErrorShape = { body: envelope, frame: errorFrame };

/** What stands between an engine's answer and its caller: translates it, or takes reasoning out of it. */
export interface AnswerFilter {
  readonly errors: ErrorShape;
  /** Frames go on as they are from now on. */
  readonly passing: boolean;
  readonly streamHeaders?: Headers;
  /** Whole frames of the engine's stream → what the caller gets of them; undefined: nothing yet. */
  frames(bytes: Buffer): Buffer | undefined;
  /** A whole answer. */
  whole(bytes: Buffer): Result<Buffer>;
  /** What keeps a waiting stream alive. */
  comment?(text: string): string;
}

/** A caller whose answers go through a filter. A whole answer is kept until its end, and goes out in one write. */
export class FilteredClient extends CallClient {
  readonly #filter: AnswerFilter;
  readonly #callId: string;
  #whole: { readonly status: number; readonly headers: Headers; readonly chunks: Buffer[] } | undefined;

  constructor(res: ServerResponse, filter: AnswerFilter, callId: string) {
    super(res);
    this.#filter = filter;
    this.#callId = callId;
  }

  override head(status: number, headers: Headers): void {
    if (headers === STREAM_HEADERS) super.head(status, this.#filter.streamHeaders ?? headers);
    else this.#whole = { status, headers, chunks: [] };
  }

  override write(chunk: Buffer): boolean {
    if (this.#whole) {
      this.#whole.chunks.push(chunk);
      return true;
    }
    if (this.#filter.passing) return super.write(chunk);
    const out = this.#filter.frames(chunk);
    return out === undefined ? true : super.write(out);
  }

  override end(last?: Buffer): void {
    const whole = this.#whole;
    this.#whole = undefined;
    if (!whole) {
      if (last) this.write(last);
      super.end();
      return;
    }
    if (last) whole.chunks.push(last);
    const [only] = whole.chunks;
    const came = whole.chunks.length === 1 && only ? only : Buffer.concat(whole.chunks);
    const answer = this.#filter.whole(came);
    if (answer.ok && answer.value === came && whole.headers.some(([name]) => name === 'content-length')) {
      super.head(whole.status, whole.headers);
      super.end(came);
      return;
    }
    if (!answer.ok) {
      this.fail(answer.error, false);
      return;
    }
    const headers = whole.headers.filter(([name]) => name !== 'content-length');
    super.head(whole.status, [...headers, ['content-length', String(answer.value.length)]]);
    super.end(answer.value);
  }

  /** Said as it is: it is in the caller's protocol already. */
  override answer(headers: Headers, bytes: Buffer): void {
    const own = headers === STREAM_HEADERS ? (this.#filter.streamHeaders ?? headers) : headers;
    super.head(200, [...own, ['content-length', String(bytes.length)]]);
    this.bytesOut += bytes.length;
    this.res.end(bytes);
  }

  override comment(text: string): void {
    const said = this.#filter.comment?.(text);
    if (said === undefined) super.comment(text);
    else if (!this.left && !this.res.writableEnded) this.res.write(said);
  }

  protected override sendFailure(error: BerthError, headers: readonly (readonly [string, string])[]): number {
    const body = this.#filter.errors.body(error, this.#callId);
    return sendFailure(this.res, error, body, headers);
  }

  protected override failureFrame(error: BerthError): string {
    return this.#filter.errors.frame(error, this.#callId);
  }
}

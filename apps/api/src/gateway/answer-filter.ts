import type { ServerResponse } from 'node:http';
import { type BerthError, berthError } from '#domain/errors.js';
import type { Result } from '#domain/result.js';
import { formatBytes, MIB } from '#domain/units.js';
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
  /** An answer is the caller's without it, too: one that is too large to be kept goes on as it is. */
  readonly optional?: true;
  /** What keeps a waiting stream alive. */
  comment?(text: string): string;
}

/** What is kept of a whole answer that could do without its filter, and of one that must be translated. */
const MOST_FILTERED_BYTES = 8 * MIB;
const MOST_TRANSLATED_BYTES = 128 * MIB;

interface Whole {
  readonly status: number;
  readonly headers: Headers;
  readonly chunks: Buffer[];
  bytes: number;
}

/** A caller whose answers go through a filter. A whole answer is kept until its end, and goes out in one write. */
export class FilteredClient extends CallClient {
  readonly #filter: AnswerFilter;
  readonly #callId: string;
  #whole: Whole | undefined;
  /** The answer goes on unfiltered. */
  #unfiltered = false;

  constructor(res: ServerResponse, filter: AnswerFilter, callId: string) {
    super(res);
    this.#filter = filter;
    this.#callId = callId;
  }

  override head(status: number, headers: Headers): void {
    if (headers === STREAM_HEADERS) super.head(status, this.#filter.streamHeaders ?? headers);
    else this.#whole = { status, headers, chunks: [], bytes: 0 };
  }

  override write(chunk: Buffer): boolean {
    if (this.#whole) return this.#keep(this.#whole, chunk);
    if (this.#unfiltered || this.#filter.passing) return super.write(chunk);
    const out = this.#filter.frames(chunk);
    return out === undefined ? true : super.write(out);
  }

  #keep(whole: Whole, chunk: Buffer): boolean {
    whole.bytes += chunk.length;
    const { optional } = this.#filter;
    if (whole.bytes <= (optional ? MOST_FILTERED_BYTES : MOST_TRANSLATED_BYTES)) {
      whole.chunks.push(chunk);
      return true;
    }
    const kept = whole.chunks.splice(0);
    if (!optional) return true;
    this.#whole = undefined;
    this.#unfiltered = true;
    super.head(whole.status, whole.headers);
    for (const before of kept) super.write(before);
    return super.write(chunk);
  }

  override end(last?: Buffer): BerthError | undefined {
    if (last && (!this.#whole || this.#whole.chunks.length > 0)) {
      this.write(last);
      return this.end();
    }
    const whole = this.#whole;
    this.#whole = undefined;
    if (!whole) return super.end();
    const came = last ?? Buffer.concat(whole.chunks);
    if (came.length < whole.bytes) return tooLargeToTell(whole.bytes);
    const answer = this.#filter.whole(came);
    if (!answer.ok) return answer.error;
    const hasLength = whole.headers.some(([name]) => name === 'content-length');
    if (answer.value === came && hasLength) super.head(whole.status, whole.headers);
    else {
      const headers = whole.headers.filter(([name]) => name !== 'content-length');
      super.head(whole.status, [...headers, ['content-length', String(answer.value.length)]]);
    }
    return super.end(answer.value);
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

const tooLargeToTell = (bytes: number): BerthError =>
  berthError(
    'engine_failed',
    `The engine's answer has ${formatBytes(bytes)}; at most ${formatBytes(MOST_TRANSLATED_BYTES)} can be told in this protocol. Ask for less in one call.`,
  );

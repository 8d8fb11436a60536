import { type Counted, Tally } from './usage.js';
import { dataOf, FrameCutter, frames } from './sse-frames.js';

const COLON = 0x3a;
const DONE = Buffer.from('[DONE]');
const USAGE = Buffer.from('"usage":');
const TIMINGS = Buffer.from('"timings":');
const ERROR = Buffer.from('"error":');
const LETTER_E = 0x65;
const COLON_LINE = Buffer.from('\n:');
const ERROR_LINE = Buffer.from('\nerror:');

/** What reads an engine's stream on its way. */
export interface Tap {
  /** What goes on now; undefined when nothing does. */
  push(chunk: Buffer): Buffer | undefined;
  /** The engine has ended its stream: what is still to be given on. */
  end(): Buffer | undefined;
  readonly done: boolean;
  readonly engineError: string | undefined;
  readonly counted: Counted;
}

export interface TapOptions {
  /** The caller did not ask for the usage chunk, which was asked for on its behalf. */
  readonly dropUsageChunk: boolean;
}

/**
 * Reads an engine's event stream on its way to the caller: counts, finds its end, leaves out what is not for the caller.
 * Frames in which nothing of that can stand are never parsed.
 */
export class StreamTap implements Tap {
  readonly #cutter = new FrameCutter();
  readonly #options: TapOptions;
  readonly #tally = new Tally();
  #done = false;
  #error: string | undefined;

  constructor(options: TapOptions) {
    this.#options = options;
  }

  /** `[DONE]` has passed: nothing after it is given on. */
  get done(): boolean {
    return this.#done;
  }

  /** The engine's own words when it ended its stream by an error frame. */
  get engineError(): string | undefined {
    return this.#error;
  }

  get counted(): Counted {
    return this.#tally.counted;
  }

  /** What goes to the caller now; undefined when nothing does. */
  push(chunk: Buffer): Buffer | undefined {
    if (this.#done || this.#error !== undefined) return undefined;
    const whole = this.#cutter.push(chunk);
    if (whole === undefined) return undefined;
    return mayMatter(whole) ? this.#sift(whole) : whole;
  }

  /** Some engines end their last frame without the empty line: closes it. */
  end(): Buffer | undefined {
    const { tail } = this.#cutter;
    if (this.#done || this.#error !== undefined || tail === undefined) return undefined;
    if (dataOf(tail) !== '[DONE]') return undefined;
    this.#done = true;
    return Buffer.from('data: [DONE]\n\n');
  }

  #sift(whole: Buffer): Buffer | undefined {
    const kept: Buffer[] = [];
    let dropped = false;
    for (const frame of frames(whole)) {
      if (this.#done || this.#error !== undefined) {
        dropped = true;
      } else if (this.#keep(frame)) {
        kept.push(frame);
      } else {
        dropped = true;
      }
    }
    if (!dropped) return whole;
    return kept.length === 0 ? undefined : Buffer.concat(kept);
  }

  #keep(frame: Buffer): boolean {
    // An engine's keep-alive (a bare colon breaks some clients) is not passed on.
    if (frame[0] === COLON) return false;
    if (!mayMatter(frame)) return true;
    const data = dataOf(frame);
    if (data === '[DONE]') {
      this.#done = true;
      return true;
    }
    if (data === undefined) return !legacyError(frame, (text) => (this.#error = text));
    const chunk = parsed(data);
    if (chunk === undefined) return true;
    if (chunk['error'] !== undefined && chunk['error'] !== null && chunk['choices'] === undefined) {
      this.#error = wordsOf(chunk['error']);
      return false;
    }
    this.#tally.hear(chunk);
    const { choices } = chunk;
    const isUsageChunk = Array.isArray(choices) && choices.length === 0 && isRecord(chunk['usage']);
    return !(isUsageChunk && this.#options.dropUsageChunk);
  }
}

const mayMatter = (bytes: Buffer): boolean =>
  bytes[0] === COLON ||
  bytes.includes(DONE) ||
  bytes.includes(USAGE) ||
  bytes.includes(TIMINGS) ||
  bytes.includes(ERROR) ||
  bytes[0] === LETTER_E ||
  bytes.includes(COLON_LINE) ||
  bytes.includes(ERROR_LINE);

/** Older llama.cpp ends a stream by a line `error: {…}`, which no client reads. */
function legacyError(frame: Buffer, found: (words: string) => void): boolean {
  const text = frame.toString('utf8');
  if (!text.startsWith('error:')) return false;
  const body = parsed(text.slice(6).trim());
  found(wordsOf(body?.['error'] ?? body ?? text.slice(6).trim()));
  return true;
}

function wordsOf(error: unknown): string {
  if (typeof error === 'string') return error;
  if (isRecord(error) && typeof error['message'] === 'string') return error['message'];
  return 'it gave no reason';
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    // No JSON: it is the caller's to read.
    return undefined;
  }
}

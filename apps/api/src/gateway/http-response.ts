import type { IncomingHttpHeaders } from 'node:http';

export interface ResponseEvents {
  /** Interim heads (1xx) too. */
  head(status: number, headers: IncomingHttpHeaders): void;
  /** The body's bytes of one read, without framing; a buffer of its own. */
  data(chunk: Buffer): void;
  end(): void;
}

type State = 'head' | 'fixed' | 'until-close' | 'size' | 'chunk' | 'chunk-end' | 'trailers' | 'done';

const HEAD_END = Buffer.from('\r\n\r\n');
const MOST_HEAD_BYTES = 64 * 1024;
const MOST_CHUNK_BYTES = 2 ** 40;
const CR = 0x0d;
const LF = 0x0a;
const SEMICOLON = 0x3b;
const SPACE = 0x20;
const TAB = 0x09;
const STATUS_LINE = /^HTTP\/1\.([01]) (\d{3})(?: |$)/;

/**
 * Reads HTTP/1.1 answers off a connection. What is pushed may be overwritten afterwards: nothing of it is kept. A read
 * that holds many chunks of a body comes out as one piece.
 */
export class ResponseParser {
  /** Whether the connection may carry another request after this answer. */
  keepAlive = true;
  readonly #events: ResponseEvents;
  #state: State = 'head';
  #partialHead: Buffer | undefined;
  /** Of a body with a length, or of the chunk under way. */
  #left = 0;
  #sizeDigits = 0;
  #inExtension = false;
  #lineBytes = 0;

  constructor(events: ResponseEvents) {
    this.#events = events;
  }

  /** Whether anything of an answer has come. */
  get begun(): boolean {
    return this.#state !== 'head' || this.#partialHead !== undefined;
  }

  /** @throws Error in words, when this is no HTTP/1.1 answer. */
  push(bytes: Buffer): void {
    let at = 0;
    while (this.#state === 'head') {
      const next = this.#head(bytes, at);
      if (next === undefined) return;
      at = next;
    }
    if (this.#state === 'fixed') {
      this.#fixed(bytes, at);
    } else if (this.#state === 'until-close') {
      if (at < bytes.length) this.#events.data(Buffer.from(bytes.subarray(at)));
    } else if (this.#state === 'done') {
      if (at < bytes.length) throw new Error('it sent more than its answer');
    } else {
      this.#chunked(bytes, at);
    }
  }

  /** The connection was closed. @returns false when the answer was not complete. */
  close(): boolean {
    if (this.#state === 'until-close') this.#done();
    return this.#state === 'done';
  }

  /** @returns the offset after a whole head; undefined when more of it must come. */
  #head(bytes: Buffer, from: number): number | undefined {
    const before = this.#partialHead;
    const all = before ? Buffer.concat([before, bytes]) : bytes;
    const start = before ? 0 : from;
    const end = all.indexOf(HEAD_END, start);
    if ((end < 0 ? all.length : end) - start > MOST_HEAD_BYTES) throw new Error('its head is too long');
    if (end < 0) {
      if (all.length > start) this.#partialHead = Buffer.from(all.subarray(start));
      return undefined;
    }
    this.#partialHead = undefined;
    this.#begin(all.toString('latin1', start, end));
    return end + HEAD_END.length - (before?.length ?? 0);
  }

  #begin(text: string): void {
    const lineEnd = text.indexOf('\r\n');
    const statusLine = lineEnd < 0 ? text : text.slice(0, lineEnd);
    const match = STATUS_LINE.exec(statusLine);
    if (!match) throw new Error('it did not answer with HTTP/1.1');
    const status = Number(match[2]);
    const headers = parseHeaders(text, statusLine.length + 2);
    if (status < 200) {
      if (status === 101) throw new Error('it switched to another protocol');
      this.#events.head(status, headers);
      return;
    }
    const connection = headers.connection?.toLowerCase();
    this.keepAlive = match[1] === '1' ? connection !== 'close' : connection === 'keep-alive';
    const length = headers['content-length'];
    if (status === 204 || status === 304) {
      this.#state = 'done';
    } else if (headers['transfer-encoding'] !== undefined) {
      if (headers['transfer-encoding'].trim().toLowerCase() !== 'chunked') {
        throw new Error(`it used the transfer coding "${headers['transfer-encoding'].slice(0, 40)}"`);
      }
      this.#startSize();
    } else if (length !== undefined) {
      if (!/^\d{1,15}$/.test(length)) throw new Error('its content-length is no number');
      this.#left = Number(length);
      this.#state = this.#left === 0 ? 'done' : 'fixed';
    } else {
      this.keepAlive = false;
      this.#state = 'until-close';
    }
    this.#events.head(status, headers);
    if (this.#state === 'done') this.#events.end();
  }

  #fixed(bytes: Buffer, at: number): void {
    const end = Math.min(bytes.length, at + this.#left);
    if (end > at) {
      this.#left -= end - at;
      this.#events.data(Buffer.from(bytes.subarray(at, end)));
    }
    if (this.#left > 0) return;
    this.#done();
    if (end < bytes.length) throw new Error('it sent more than its answer');
  }

  #chunked(bytes: Buffer, from: number): void {
    let at = from;
    let out: Buffer | undefined;
    let filled = 0;
    while (at < bytes.length && this.#state !== 'done') {
      if (this.#state === 'chunk') {
        const end = Math.min(bytes.length, at + this.#left);
        out ??= Buffer.allocUnsafe(bytes.length - at);
        filled += bytes.copy(out, filled, at, end);
        this.#left -= end - at;
        at = end;
        if (this.#left === 0) this.#state = 'chunk-end';
      } else {
        this.#frame(bytes[at] ?? 0);
        at += 1;
      }
    }
    if (out && filled > 0) this.#events.data(filled === out.length ? out : out.subarray(0, filled));
    if (this.#state !== 'done') return;
    this.#events.end();
    if (at < bytes.length) throw new Error('it sent more than its answer');
  }

  /** One byte between the pieces of a chunked body. */
  #frame(byte: number): void {
    if (this.#state === 'size') {
      this.#size(byte);
    } else if (this.#state === 'chunk-end') {
      if (byte === LF) this.#startSize();
      else if (byte !== CR) throw new Error('a chunk of its answer is longer than it said');
    } else if (byte === LF) {
      // Trailers: lines up to an empty one, of no use to anybody.
      if (this.#lineBytes === 0) this.#state = 'done';
      this.#lineBytes = 0;
    } else if (byte !== CR) {
      this.#lineBytes += 1;
    }
  }

  #size(byte: number): void {
    if (byte === LF) {
      if (this.#sizeDigits === 0) throw new Error('a chunk of its answer has no size');
      this.#lineBytes = 0;
      this.#state = this.#left === 0 ? 'trailers' : 'chunk';
      return;
    }
    if (byte === SEMICOLON || byte === SPACE || byte === TAB) this.#inExtension = true;
    if (this.#inExtension || byte === CR) return;
    const digit = hexDigit(byte);
    if (digit === undefined) throw new Error('a chunk of its answer has no readable size');
    this.#sizeDigits += 1;
    this.#left = this.#left * 16 + digit;
    if (this.#left > MOST_CHUNK_BYTES) throw new Error('a chunk of its answer is beyond all bounds');
  }

  #startSize(): void {
    this.#state = 'size';
    this.#left = 0;
    this.#sizeDigits = 0;
    this.#inExtension = false;
  }

  #done(): void {
    this.#state = 'done';
    this.#events.end();
  }
}

/** The lines of a head from an offset on. */
function parseHeaders(text: string, from: number): IncomingHttpHeaders {
  const headers: Record<string, string> = {};
  for (let at = from; at < text.length;) {
    const found = text.indexOf('\r\n', at);
    const end = found < 0 ? text.length : found;
    const colon = text.indexOf(':', at);
    if (colon <= at || colon > end) throw new Error('it sent a header without a name');
    const name = text.slice(at, colon).trim().toLowerCase();
    const value = text.slice(colon + 1, end).trim();
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (name === 'content-length') {
      if (before !== value) throw new Error('it sent two lengths');
    } else headers[name] = `${before}, ${value}`;
    at = end + 2;
  }
  return headers;
}

function hexDigit(byte: number): number | undefined {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : undefined;
}

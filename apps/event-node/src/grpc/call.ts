import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { GRPC, type Ending } from '../protocol/status.js';
import { messageOf } from '../errors.js';
import { CompressedMessage, MessageBatch, MessageReader, MessageTooLarge } from './messages.js';

const LARGEST_MESSAGE = 17 * 1024 * 1024;
/** From this size on a batch of messages is sent at once. */
const BATCH_BYTES = 64 * 1024;
const HEADERS = { ':status': 200, 'content-type': 'application/grpc+proto' } as const;
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const UNIT_MS: Readonly<Record<string, number>> = { H: 3.6e6, M: 6e4, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface CallListener {
  onMessage(message: Buffer): void;
  /** The client sends no more. */
  onHalfClose?(): void;
  /** The client cancelled or its connection is gone; comes once, and not after an end of ours. */
  onGone?(): void;
}

/**
 * One gRPC call on an HTTP/2 stream. What is written within one turn of the loop leaves in one piece: a group commit
 * answers dozens of appends at once, and a page of events is hundreds of messages.
 */
export class GrpcCall {
  readonly authorization: string | undefined;
  readonly #stream: ServerHttp2Stream;
  readonly #reader = new MessageReader(LARGEST_MESSAGE);
  readonly #batch = new MessageBatch();
  #flushing = false;
  #begun = false;
  #ended = false;
  #listener: CallListener | undefined;
  #onDrain: (() => void) | undefined;
  #deadline: NodeJS.Timeout | undefined;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.#stream = stream;
    this.authorization = headers.authorization;
    // Said by `close` as well; without a listener it would end the process.
    stream.on('error', () => undefined);
    stream.on('close', () => this.#gone());
    stream.on('drain', () => this.#onDrain?.());
    this.#watchTimeout(headers['grpc-timeout']);
  }

  listen(listener: CallListener): void {
    this.#listener = listener;
    this.#stream.on('data', (chunk: Buffer) => {
      if (this.#ended) return;
      try {
        this.#reader.take(chunk, (message) => {
          if (!this.#ended) listener.onMessage(message);
        });
      } catch (error) {
        this.fail(readingEnding(error));
      }
    });
    this.#stream.on('end', () => {
      if (!this.#ended) listener.onHalfClose?.();
    });
  }

  get isPaused(): boolean {
    return this.#stream.isPaused();
  }
  pause(): void {
    this.#stream.pause();
  }
  resume(): void {
    this.#stream.resume();
  }

  /** False when the client does not keep up: wait for `onDrain` before the next one. */
  write(message: Buffer): boolean {
    if (this.#ended) return true;
    this.#batch.add(message);
    if (this.#batch.bytes >= BATCH_BYTES) return this.#flush();
    if (!this.#flushing) {
      this.#flushing = true;
      process.nextTick(() => {
        this.#flushing = false;
        this.#flush();
      });
    }
    return !this.#stream.writableNeedDrain;
  }

  get needsDrain(): boolean {
    return !this.#ended && this.#stream.writableNeedDrain;
  }
  onDrain(drained: () => void): void {
    this.#onDrain = drained;
  }

  end(): void {
    this.#finish({ code: GRPC.OK, message: '', trailers: {} });
  }

  fail(ending: Ending): void {
    this.#finish(ending);
  }

  #flush(): boolean {
    if (this.#ended || this.#stream.destroyed || this.#batch.bytes === 0) return true;
    this.#begin();
    return this.#stream.write(this.#batch.take());
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#stream.respond(HEADERS, { waitForTrailers: true });
  }

  #finish({ code, message, trailers }: Ending): void {
    if (this.#ended) return;
    this.#flush();
    this.#ended = true;
    clearTimeout(this.#deadline);
    if (this.#stream.destroyed) return;
    const status = { 'grpc-status': String(code), 'grpc-message': headerText(message), ...trailers };
    // What the client still sends is of no use; unread it would hold the connection's window.
    this.#stream.resume();
    if (!this.#begun) {
      this.#stream.respond({ ...HEADERS, ...status }, { endStream: true });
      return;
    }
    this.#stream.once('wantTrailers', () => this.#stream.sendTrailers(status));
    this.#stream.end();
  }

  #gone(): void {
    clearTimeout(this.#deadline);
    if (this.#ended) return;
    this.#ended = true;
    this.#listener?.onGone?.();
  }

  #watchTimeout(header: string | readonly string[] | undefined): void {
    const [, amount, unit] = TIMEOUT.exec(String(header ?? '')) ?? [];
    if (amount === undefined || unit === undefined) return;
    const ms = Number(amount) * (UNIT_MS[unit] ?? 1);
    if (ms > LONGEST_TIMER_MS) return;
    this.#deadline = setTimeout(() => {
      const listener = this.#listener;
      this.fail({ code: GRPC.DEADLINE_EXCEEDED, message: 'Deadline exceeded', trailers: {} });
      listener?.onGone?.();
    }, ms);
  }
}

function readingEnding(error: unknown): Ending {
  const code =
    error instanceof MessageTooLarge
      ? GRPC.RESOURCE_EXHAUSTED
      : error instanceof CompressedMessage
        ? GRPC.UNIMPLEMENTED
        : GRPC.INTERNAL;
  return { code, message: messageOf(error), trailers: {} };
}

/** Percent-encoded, as the protocol wants it; a lone surrogate could not be. */
const headerText = (text: string): string => encodeURI(text.replaceAll(/\p{Surrogate}/gu, '?'));

import type { IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { ResponseParser, type ResponseEvents } from './http-response.js';

export interface UpstreamRequest {
  readonly method: 'POST' | 'GET';
  readonly path: string;
  /** Names and values in turn, the length of the body among them. */
  readonly headers: readonly string[];
  /** Pieces in their order. Not to be changed before the request has ended. */
  readonly body: readonly Buffer[];
  readonly bodyBytes: number;
}

export interface UpstreamController {
  /** Ends the request and its connection; the handler is told with this reason. */
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

/** Told of one request: started once, then ended or failed once. */
export interface UpstreamHandler {
  onRequestStart(controller: UpstreamController): void;
  onResponseStart(controller: UpstreamController, status: number, headers: IncomingHttpHeaders): void;
  /** A buffer of its own: it may be kept. */
  onResponseData(controller: UpstreamController, chunk: Buffer): void;
  onResponseEnd(controller: UpstreamController): void;
  onResponseError(controller: UpstreamController, error: Error): void;
}

const CONNECT_TIMEOUT_MS = 5000;
const READ_BYTES = 64 * 1024;
/** Up to here head and body are copied together, so that they go out as one buffer. */
const ONE_WRITE_BYTES = 16 * 1024;
/**
 * Every read of every connection lands here and is taken over before the next: open streams hold no buffers. Windows
 * gives the buffer of a read away until the read is done: there each connection has its own.
 */
const SHARED = process.platform === 'win32' ? undefined : Buffer.allocUnsafeSlow(READ_BYTES);

/**
 * One kept-alive HTTP/1.1 connection to an engine, one request at a time. Engines are ours and speak plain HTTP/1.1 from
 * this machine, which a general client (undici, node:http) pays for being ready for everything else: a turn of the event
 * loop, two timers and half of the time of a small call.
 */
export class EngineConnection implements UpstreamController, ResponseEvents {
  idleSinceMs = 0;
  readonly #socket: Socket;
  readonly #onFree: (connection: EngineConnection) => void;
  readonly #onGone: (connection: EngineConnection) => void;
  readonly #host: string;
  #connecting: NodeJS.Timeout | undefined;
  #handler: UpstreamHandler | undefined;
  #parser: ResponseParser | undefined;
  #error: Error | undefined;
  #gone = false;

  constructor(
    port: number,
    onFree: (connection: EngineConnection) => void,
    onGone: (connection: EngineConnection) => void,
  ) {
    this.#host = `127.0.0.1:${port}`;
    this.#onFree = onFree;
    this.#onGone = onGone;
    const buffer = SHARED ?? Buffer.allocUnsafeSlow(READ_BYTES);
    const callback = (bytes: number) => {
      this.#read(buffer.subarray(0, bytes));
      return true;
    };
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread: { buffer, callback } });
    this.#connecting = setTimeout(
      () => this.#socket.destroy(new Error(`it took no connection within ${CONNECT_TIMEOUT_MS / 1000} s`)),
      CONNECT_TIMEOUT_MS,
    );
    this.#socket.on('connect', () => this.#connected());
    this.#socket.on('error', (error) => (this.#error = error));
    this.#socket.on('end', () => this.#closed());
    this.#socket.on('close', () => this.#closed());
  }

  get usable(): boolean {
    return !this.#gone;
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): void {
    this.#handler = handler;
    this.#parser = new ResponseParser(this);
    handler.onRequestStart(this);
    if (this.#handler !== handler) return;
    const { method, path, headers, body, bodyBytes } = request;
    let head = `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n`;
    for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
    head += '\r\n';
    if (head.length + bodyBytes <= ONE_WRITE_BYTES) {
      const bytes = Buffer.allocUnsafe(head.length + bodyBytes);
      let at = bytes.write(head, 'latin1');
      for (const piece of body) at += piece.copy(bytes, at);
      this.#socket.write(bytes);
    } else {
      this.#socket.cork();
      this.#socket.write(head, 'latin1');
      for (const piece of body) this.#socket.write(piece);
      this.#socket.uncork();
    }
  }

  abort(reason: Error): void {
    const handler = this.#handler;
    this.destroy();
    handler?.onResponseError(this, reason);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Without a word to the handler. */
  destroy(): void {
    this.#handler = undefined;
    this.#leave();
    this.#socket.destroy();
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.#handler?.onResponseStart(this, status, headers);
  }

  data(chunk: Buffer): void {
    this.#handler?.onResponseData(this, chunk);
  }

  end(): void {
    const handler = this.#handler;
    if (!handler) return;
    this.#handler = undefined;
    if (this.#isFree()) this.#onFree(this);
    else this.destroy();
    handler.onResponseEnd(this);
  }

  /** An engine that answered before it had read everything leaves bytes behind that are the caller's, and not to be kept. */
  #isFree(): boolean {
    const keeps = this.#parser?.keepAlive === true && !this.#gone;
    return keeps && !this.#socket.isPaused() && this.#socket.writableLength === 0;
  }

  #read(bytes: Buffer): void {
    if (!this.#handler) {
      // Nothing was asked: whatever this is, the next answer must not begin with it.
      this.destroy();
      return;
    }
    try {
      this.#parser?.push(bytes);
    } catch (error) {
      const why = new Error(
        `what it answered cannot be read: ${error instanceof Error ? error.message : 'unknown'}`,
      );
      this.#fail(why);
    }
  }

  #closed(): void {
    if (this.#gone) return;
    this.#leave();
    if (this.#handler && this.#parser?.close() !== true) {
      this.#fail(this.#error ?? new Error('it closed the connection'));
    }
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    const handler = this.#handler;
    this.destroy();
    handler?.onResponseError(this, error);
  }

  #connected(): void {
    clearTimeout(this.#connecting);
    this.#connecting = undefined;
  }

  #leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#connected();
    this.#onGone(this);
  }
}

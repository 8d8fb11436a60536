import type { IncomingMessage } from 'node:http';
import { type BerthError, berthError } from '#domain/errors.js';
import { type Result, err, ok } from '#domain/result.js';
import { formatBytes, MIB } from '#domain/units.js';
import { NO_SLOT } from '#runtime/slot-list.js';
import { type Alarm, Alarms } from './alarms.js';
import { BodyBuffers, SMALLEST_KEPT_BYTES } from './body-buffers.js';

export const MAX_BODY_BYTES = 64 * MIB;
/** A body that brings nothing for this long is given up: its sender is gone, or holds the connection on purpose. */
const STALLED_MS = 60_000;

export const tooLarge = (said: number | undefined): BerthError =>
  berthError(
    'body_too_large',
    `The body ${said === undefined ? 'is larger than' : `has ${formatBytes(said)};`} ` +
      `${said === undefined ? '' : 'the limit is '}${formatBytes(MAX_BODY_BYTES)}. Send less in one call.`,
    { details: { limitBytes: MAX_BODY_BYTES } },
  );

const coded = (coding: string): BerthError =>
  berthError('invalid_request', `The body is sent as "${coding}". Send it uncompressed: JSON in UTF-8.`, {
    param: 'content-encoding',
  });

export const stalled = (bytes: number): BerthError =>
  berthError(
    'request_timeout',
    `The body stopped coming after ${formatBytes(bytes)}: nothing more came for ${STALLED_MS / 1000} s. Send it again.`,
  );

/** What is refused before it is read is taken off the wire at most this long and this far, so that its sender can listen. */
const LINGER_MS = 30_000;
const LINGER_BYTES = 4 * MAX_BODY_BYTES;

/**
 * A sender that is still sending when its connection is closed never sees why: what comes after the answer is read and
 * dropped, within bounds. Then the connection serves its next request as any other.
 */
export function linger(req: IncomingMessage): void {
  if (req.complete || req.destroyed) return;
  let bytes = 0;
  const timer = setTimeout(() => req.socket.destroy(), LINGER_MS);
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > LINGER_BYTES) req.socket.destroy();
  });
  req.on('close', () => clearTimeout(timer));
  req.on('end', () => clearTimeout(timer));
}

interface Stalls {
  readonly alarms: Alarms;
  readonly afterMs: number;
}
export const STALLS: Stalls = { alarms: new Alarms(5000), afterMs: STALLED_MS };

const BUFFERS = new BodyBuffers();
/** A length is only what a sender says: of longer bodies that much is had at once, and more as it comes. */
const FIRST_BYTES = 4 * MIB;

/** Undefined: the client left before it had sent everything. */
export type Received = Result<Buffer> | undefined;

/** What holds the bytes of a body. */
export interface Body {
  /** Nobody reads them any more; whoever cannot say so leaves them to the collector. */
  release(): void;
}

/** Reads a body once, and says so once. What is larger than the limit is refused as soon as that is known. */
export function receiveBody(
  req: IncomingMessage,
  done: (received: Received) => void,
  stalls: Stalls = STALLS,
): Body | undefined {
  const refusal = refusedUnread(req);
  if (!refusal) return new BodyReader(req, done, stalls);
  done(err(refusal));
  return undefined;
}

export const readBody = (req: IncomingMessage): Promise<Received> =>
  new Promise((resolve) => receiveBody(req, resolve));

export function refusedUnread(req: IncomingMessage): BerthError | undefined {
  const said = req.headers['content-length'];
  const length = said === undefined ? undefined : Number(said);
  if (length !== undefined && length > MAX_BODY_BYTES) return tooLarge(length);
  const coding = req.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  return coding === 'identity' || coding === '' ? undefined : coded(coding.slice(0, 40));
}

class BodyReader implements Alarm, Body {
  slot = NO_SLOT;
  dueAtMs = 0;
  readonly #done: (received: Received) => void;
  readonly #stalls: Stalls;
  /** In one read, or in few small ones. */
  readonly #chunks: Buffer[] = [];
  /** Of a large one. */
  #buffer: Buffer | undefined;
  readonly #saidBytes: number;
  #bytes = 0;
  #over = false;

  constructor(req: IncomingMessage, done: (received: Received) => void, stalls: Stalls) {
    this.#done = done;
    this.#saidBytes = Number(req.headers['content-length'] ?? 0);
    this.#stalls = stalls;
    this.#progressed();
    stalls.alarms.set(this);
    req.on('data', (chunk: Buffer) => this.#take(chunk));
    req.on('end', () => this.#settle(ok(this.#whole())));
    // A half-sent body: nobody is there to be answered.
    req.on('error', () => this.#settle(undefined));
    req.on('close', () => {
      if (!req.complete) this.#settle(undefined);
    });
  }

  ring(): void {
    this.#settle(err(stalled(this.#bytes)));
  }

  #take(chunk: Buffer): void {
    if (this.#over) return;
    this.#bytes += chunk.length;
    this.#progressed();
    if (this.#bytes > MAX_BODY_BYTES) {
      this.#chunks.length = 0;
      this.#settle(err(tooLarge(undefined)));
      this.release();
    } else if (this.#bytes > SMALLEST_KEPT_BYTES || this.#saidBytes > SMALLEST_KEPT_BYTES) {
      this.#room().set(chunk, this.#bytes - chunk.length);
    } else {
      this.#chunks.push(chunk);
    }
  }

  /** The buffer, with what came before in it and room for what has come now. */
  #room(): Buffer {
    const before = this.#buffer;
    if (before && before.length >= this.#bytes) return before;
    const room = BUFFERS.take(Math.max(this.#bytes, Math.min(this.#saidBytes, FIRST_BYTES)));
    if (before) {
      before.copy(room);
      BUFFERS.giveBack(before);
    }
    let at = 0;
    for (const chunk of this.#chunks.splice(0)) at += chunk.copy(room, at);
    this.#buffer = room;
    return room;
  }

  #whole(): Buffer {
    if (this.#buffer) return this.#buffer.subarray(0, this.#bytes);
    const [only] = this.#chunks;
    return this.#chunks.length === 1 && only ? only : Buffer.concat(this.#chunks);
  }

  release(): void {
    this.#over = true;
    this.#stalls.alarms.clear(this);
    if (this.#buffer) BUFFERS.giveBack(this.#buffer);
    this.#buffer = undefined;
  }

  #progressed(): void {
    this.dueAtMs = performance.now() + this.#stalls.afterMs;
  }

  #settle(received: Received): void {
    if (this.#over) return;
    this.#over = true;
    this.#stalls.alarms.clear(this);
    this.#done(received);
  }
}

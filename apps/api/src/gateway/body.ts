import type { IncomingMessage } from 'node:http';
import { type BerthError, berthError } from '#domain/errors.js';
import { type Result, err, ok } from '#domain/result.js';
import { formatBytes, MIB } from '#domain/units.js';
import { BODY_STALLED_MS, SlowBodies } from './slow-bodies.js';

export const MAX_BODY_BYTES = 64 * MIB;

const tooLarge = (said: number | undefined): BerthError =>
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

const stalled = (bytes: number): BerthError =>
  berthError(
    'request_timeout',
    `The body stopped coming after ${formatBytes(bytes)}: nothing more came for ${BODY_STALLED_MS / 1000} s. Send it again.`,
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

const allSlow = new SlowBodies();

/**
 * Reads a body once. What is larger than the limit is refused as soon as that is known.
 * @returns undefined when the client left before it had sent everything.
 */
export function readBody(
  req: IncomingMessage,
  slow: SlowBodies = allSlow,
): Promise<Result<Buffer> | undefined> {
  const said = req.headers['content-length'];
  const length = said === undefined ? undefined : Number(said);
  if (length !== undefined && length > MAX_BODY_BYTES) return Promise.resolve(err(tooLarge(length)));
  const coding = req.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (coding !== 'identity' && coding !== '') return Promise.resolve(err(coded(coding.slice(0, 40))));
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let over = false;
    const progress = {
      lastByteAtMs: performance.now(),
      giveUp: () => settle(err(stalled(bytes))),
    };
    const settle = (result: Result<Buffer> | undefined) => {
      over = true;
      slow.done(progress);
      resolve(result);
    };
    slow.watch(progress);
    req.on('data', (chunk: Buffer) => {
      if (over) return;
      bytes += chunk.length;
      progress.lastByteAtMs = performance.now();
      if (bytes > MAX_BODY_BYTES) {
        chunks.length = 0;
        settle(err(tooLarge(undefined)));
        return;
      }
      chunks.push(chunk);
    });
    req.on('end', () => {
      const [only] = chunks;
      settle(ok(chunks.length === 1 && only ? only : Buffer.concat(chunks)));
    });
    // A half-sent body: nobody is there to be answered.
    req.on('error', () => settle(undefined));
    req.on('close', () => {
      if (!req.complete) settle(undefined);
    });
  });
}

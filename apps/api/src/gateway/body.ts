import type { IncomingMessage } from 'node:http';
import { type BerthError, berthError } from '#domain/errors.js';
import { type Result, err, ok } from '#domain/result.js';
import { formatBytes, MIB } from '#domain/units.js';

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

/**
 * Reads a body once. What is larger than the limit is refused as soon as that is known.
 * @returns undefined when the client left before it had sent everything.
 */
export function readBody(req: IncomingMessage): Promise<Result<Buffer> | undefined> {
  const said = req.headers['content-length'];
  const length = said === undefined ? undefined : Number(said);
  if (length !== undefined && length > MAX_BODY_BYTES) return Promise.resolve(err(tooLarge(length)));
  const coding = req.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (coding !== 'identity' && coding !== '') return Promise.resolve(err(coded(coding.slice(0, 40))));
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let over = false;
    req.on('data', (chunk: Buffer) => {
      if (over) return;
      bytes += chunk.length;
      if (bytes > MAX_BODY_BYTES) {
        over = true;
        chunks.length = 0;
        resolve(err(tooLarge(undefined)));
        return;
      }
      chunks.push(chunk);
    });
    req.on('end', () => {
      const [only] = chunks;
      resolve(ok(chunks.length === 1 && only ? only : Buffer.concat(chunks)));
    });
    // A half-sent body: nobody is there to be answered.
    req.on('error', () => resolve(undefined));
    req.on('close', () => {
      if (!req.complete) resolve(undefined);
    });
  });
}

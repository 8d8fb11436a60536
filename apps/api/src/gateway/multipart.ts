import { berthError } from '#domain/errors.js';
import { type Result, err, ok } from '#domain/result.js';

/** A part of a form; offsets are into the form's bytes. */
export interface FormPart {
  readonly name: string;
  readonly valueStart: number;
  readonly valueEnd: number;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const MOST_HEAD_BYTES = 16 * 1024;
const CRLF_BYTES = 2;
const BOUNDARY = /^multipart\/form-data\s*;.*\bboundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i;
const NAME = /^content-disposition:.*[;\s]name=(?:"([^"]*)"|([^\s;"]+))/im;

const malformed = (what: string) => err(berthError('invalid_request', `The form is malformed: ${what}.`));

/** @returns what parts the form of a request; a 400 when its `content-type` is no form's. */
export function boundaryOf(contentType: string | undefined): Result<string> {
  const match = BOUNDARY.exec(contentType ?? '');
  const boundary = match?.[1] ?? match?.[2];
  if (boundary !== undefined) return ok(boundary);
  const message =
    'Send a form (multipart/form-data with its boundary), with the "file" and the "model" as parts.';
  return err(berthError('invalid_request', message, { param: 'content-type' }));
}

/** Finds the parts of a form without copying them: a file may come before the fields that say what to do with it. */
export function formParts(bytes: Buffer, boundary: string): Result<readonly FormPart[]> {
  const delimiter = Buffer.from(`--${boundary}`);
  const next = Buffer.from(`\r\n--${boundary}`);
  const parts: FormPart[] = [];
  let at = bytes.indexOf(delimiter);
  if (at < 0) return malformed('its boundary is nowhere in it');
  at += delimiter.length;
  for (;;) {
    if (bytes.toString('latin1', at, at + 2) === '--') return ok(parts);
    const headEnd = bytes.indexOf(HEAD_END, at);
    if (headEnd < 0 || headEnd - at > MOST_HEAD_BYTES)
      return malformed('a part of it has no end of its head');
    const match = NAME.exec(bytes.toString('utf8', at + CRLF_BYTES, headEnd));
    const name = match?.[1] ?? match?.[2];
    if (name === undefined) return malformed('a part of it has no name');
    const valueStart = headEnd + HEAD_END.length;
    // The value may be empty, and its end then begins with the end of the head.
    const valueEnd = bytes.indexOf(next, valueStart - CRLF_BYTES);
    if (valueEnd < 0) return malformed(`it ends inside of its part "${name.slice(0, 40)}"`);
    parts.push({ name, valueStart, valueEnd: Math.max(valueStart, valueEnd) });
    at = valueEnd + next.length;
  }
}

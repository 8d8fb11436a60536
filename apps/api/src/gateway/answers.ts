import type { ServerResponse } from 'node:http';
import { type BerthError, ERROR_CODES } from '#domain/errors.js';

/** Longest wait that a client is asked for: above it some clients give up and others sleep for hours. */
const MAX_RETRY_AFTER_SECONDS = 60;
const DEFAULT_RETRY_AFTER_SECONDS = 5;

export interface ErrorEnvelope {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly code: string;
    readonly param: string | null;
  };
}

/** OpenAI's error object. */
export function envelope(error: BerthError): ErrorEnvelope {
  const { status } = ERROR_CODES[error.code];
  return {
    error: {
      message: error.message,
      type: status === 401 ? 'authentication_error' : status < 500 ? 'invalid_request_error' : 'server_error',
      code: error.code,
      param: error.param ?? null,
    },
  };
}

/** Retry-After on 429 and 503, and `x-should-retry: false` where asking again cannot help. */
export function retryHeaders(error: BerthError): [string, string][] {
  const { status, retry } = ERROR_CODES[error.code];
  const headers: [string, string][] = [];
  if (status === 503) {
    const wanted = Math.ceil(error.retryAfterSeconds ?? DEFAULT_RETRY_AFTER_SECONDS);
    headers.push(['retry-after', String(Math.min(MAX_RETRY_AFTER_SECONDS, Math.max(1, wanted)))]);
  }
  // A load that failed is remembered: until its back-off is over the answer stays the same.
  if (!retry || error.code === 'model_load_failed') headers.push(['x-should-retry', 'false']);
  return headers;
}

export const statusOf = (error: BerthError): number => ERROR_CODES[error.code].status;

/** Answers before any head went out. `head` requests get the head alone. */
export function sendJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: readonly (readonly [string, string])[] = [],
): number {
  const bytes = Buffer.from(JSON.stringify(body));
  for (const [name, value] of headers) res.setHeader(name, value);
  res.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': bytes.length,
  });
  const withBody = res.req.method !== 'HEAD';
  res.end(withBody ? bytes : undefined);
  return withBody ? bytes.length : 0;
}

/** An error whose body its protocol has written. */
export const sendFailure = (
  res: ServerResponse,
  error: BerthError,
  body: unknown,
  headers: readonly (readonly [string, string])[] = [],
): number => sendJson(res, statusOf(error), body, [...headers, ...retryHeaders(error)]);

export const sendError = (
  res: ServerResponse,
  error: BerthError,
  headers: readonly (readonly [string, string])[] = [],
): number => sendFailure(res, error, envelope(error), headers);

/** After the head there is no status any more: the protocol's own error frame. No `[DONE]` may follow. */
export const errorFrame = (error: BerthError): string => {
  const { error: fields } = envelope(error);
  return `data: ${JSON.stringify({ error: { ...fields, type: 'server_error' } })}\n\n`;
};

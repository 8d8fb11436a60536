import { HttpException } from '@nestjs/common';
import { type BerthError, BerthFailure, berthError, ERROR_CODES, type ErrorCode } from '#domain/errors.js';

/** RFC 9457, with our code and figures as members of their own. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: ErrorCode;
  readonly param?: string;
  readonly retryAfterSeconds?: number;
  readonly [member: string]: unknown;
}

const DEFAULT_RETRY_SECONDS = 2;
const LONGEST_RETRY_SECONDS = 60;

/** `views_unavailable` → `Views unavailable` */
const titleOf = (code: ErrorCode): string => {
  const words = code.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
};

export function problemOf(error: BerthError, instance: string): Problem {
  const { status, retry } = ERROR_CODES[error.code];
  return {
    ...error.details,
    type: `urn:berth:error:${error.code}`,
    title: titleOf(error.code),
    status,
    detail: error.message,
    instance,
    code: error.code,
    ...(error.param === undefined ? {} : { param: error.param }),
    ...(retry ? { retryAfterSeconds: retryAfter(error) } : {}),
  };
}

export const retryAfter = (error: BerthError): number =>
  Math.min(LONGEST_RETRY_SECONDS, Math.max(1, Math.ceil(error.retryAfterSeconds ?? DEFAULT_RETRY_SECONDS)));

const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  401: 'invalid_api_key',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'body_too_large',
};

/**
 * What any thrown thing is in our table. What nobody foresaw is `internal`, and its words stay in the log: they may
 * name files or statements.
 */
export function berthErrorOf(thrown: unknown): BerthError {
  if (thrown instanceof BerthFailure) return thrown.error;
  const status = statusOf(thrown);
  const code = status === undefined ? undefined : (codeIn(thrown) ?? CODE_OF_STATUS[status]);
  if (thrown instanceof Error && status !== undefined && status < 500) {
    return berthError(code ?? 'invalid_request', thrown.message);
  }
  return berthError(
    'internal',
    'Something went wrong that Berth did not foresee; the log of the api has it.',
  );
}

/** Nest's exceptions, and Fastify's own errors for what never reached a controller. */
function statusOf(thrown: unknown): number | undefined {
  if (thrown instanceof HttpException) return thrown.getStatus();
  const status = (thrown as { statusCode?: unknown } | undefined)?.statusCode;
  return typeof status === 'number' ? status : undefined;
}

function codeIn(thrown: unknown): ErrorCode | undefined {
  if (!(thrown instanceof HttpException)) return undefined;
  const body = thrown.getResponse();
  const code = typeof body === 'object' ? (body as { code?: unknown }).code : undefined;
  return typeof code === 'string' && code in ERROR_CODES ? (code as ErrorCode) : undefined;
}

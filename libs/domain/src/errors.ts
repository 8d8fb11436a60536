/**
 * Every error that a person can meet, in one table. The HTTP status is translated in one place (apps/api).
 * `retry` says whether asking again can help; such answers carry Retry-After.
 */
export const ERROR_CODES = {
  invalid_request: { status: 400, retry: false },
  context_length_exceeded: { status: 400, retry: false },
  invalid_api_key: { status: 401, retry: false },
  forbidden: { status: 403, retry: false },
  not_found: { status: 404, retry: false },
  model_not_found: { status: 404, retry: false },
  method_not_allowed: { status: 405, retry: false },
  request_timeout: { status: 408, retry: true },
  conflict: { status: 409, retry: false },
  body_too_large: { status: 413, retry: false },
  model_cannot_fit: { status: 422, retry: false },
  bad_artifact: { status: 422, retry: false },
  incompatible_engine: { status: 422, retry: false },
  limit_above_parent: { status: 422, retry: false },
  placement_timeout: { status: 503, retry: true },
  queue_full: { status: 503, retry: true },
  worker_unavailable: { status: 503, retry: true },
  event_log_unavailable: { status: 503, retry: true },
  views_unavailable: { status: 503, retry: true },
  model_load_failed: { status: 503, retry: true },
  shutting_down: { status: 503, retry: true },
  views_behind: { status: 504, retry: true },
  engine_failed: { status: 502, retry: false },
  internal: { status: 500, retry: false },
} as const satisfies Record<string, { status: number; retry: boolean }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** A sentence that a person can act on, with the figures in it, and the same figures as fields. */
export interface BerthError {
  readonly code: ErrorCode;
  readonly message: string;
  /** The request field at fault, when there is one. */
  readonly param?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
}

export const berthError = (
  code: ErrorCode,
  message: string,
  more: Omit<BerthError, 'code' | 'message'> = {},
): BerthError => ({ code, message, ...more });

/** For code that must throw: carries the same fields. */
export class BerthFailure extends Error {
  override readonly name = 'BerthFailure';
  readonly error: BerthError;
  constructor(error: BerthError, options?: { cause?: unknown }) {
    super(error.message, options);
    this.error = error;
  }
}

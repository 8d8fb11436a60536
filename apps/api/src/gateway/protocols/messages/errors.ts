import type { BerthError } from '#domain/errors.js';
import type { ErrorShape } from '../../answer-filter.js';
import { statusOf } from '../../answers.js';
import type { Json } from '../json.js';

const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  413: 'request_too_large',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  503: 'overloaded_error',
};

/** Agents compact their conversation when they read these words, and no others. */
function wordsOf(error: BerthError): string {
  if (error.code !== 'context_length_exceeded') return error.message;
  const { promptTokens, contextTokens } = error.details ?? {};
  if (typeof promptTokens !== 'number' || typeof contextTokens !== 'number') {
    return `prompt is too long: ${error.message}`;
  }
  return `prompt is too long: ${promptTokens} tokens > ${contextTokens} maximum`;
}

const body = (error: BerthError, callId: string): Json => ({
  type: 'error',
  error: { type: TYPES[statusOf(error)] ?? 'api_error', message: wordsOf(error) },
  request_id: callId,
});

export const MESSAGES_ERRORS: ErrorShape = {
  body,
  frame: (error, callId) => `event: error\ndata: ${JSON.stringify(body(error, callId))}\n\n`,
};

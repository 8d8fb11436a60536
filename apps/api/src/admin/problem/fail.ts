import { type BerthError, BerthFailure, berthError, type ErrorCode } from '#domain/errors.js';

/**
 * @param more the parameter that is at fault, or all that is said beside the message
 * @throws BerthFailure always.
 */
export function fail(
  code: ErrorCode,
  message: string,
  more: string | Omit<BerthError, 'code' | 'message'> = {},
): never {
  throw new BerthFailure(berthError(code, message, typeof more === 'string' ? { param: more } : more));
}

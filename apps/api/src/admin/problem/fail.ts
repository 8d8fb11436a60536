import { BerthFailure, berthError, type ErrorCode } from '#domain/errors.js';

/** @throws BerthFailure always. */
export function fail(code: ErrorCode, message: string, param?: string): never {
  throw new BerthFailure(berthError(code, message, param === undefined ? {} : { param }));
}

import { fail } from './fail.js';

/** @throws BerthFailure `not_found` that says where to look. */
export function found<T>(value: T | undefined, what: string, id: string): T {
  if (value !== undefined) return value;
  return fail(
    'not_found',
    `No ${what} ${id} is in the views. GET /admin/${what}s lists what there is; what was written just now may still be on its way.`,
    'id',
  );
}

import type { Result } from '#domain/result.js';
import type { Caller, Refusal } from '../../access/access.js';
import type { Visitor } from '../../access/visitor.js';

/** Who may use the management API. The api gives its own; this folder only asks. */
export interface AccessPolicy {
  management(visitor: Visitor): Result<Caller, Refusal>;
}

export const ACCESS_POLICY = Symbol('access policy');

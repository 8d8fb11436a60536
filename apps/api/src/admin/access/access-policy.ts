import type { BerthError } from '#domain/errors.js';

/** What a policy looks at: where the request comes from and what it says of itself. */
export interface AdminVisitor {
  /** Address of the immediate peer. */
  readonly peer: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Who may use the management API. The api gives its own; this folder only asks. */
export interface AccessPolicy {
  /** @returns the refusal, or undefined when the visitor may come in. */
  refuse(visitor: AdminVisitor): BerthError | undefined | Promise<BerthError | undefined>;
}

export const ACCESS_POLICY = Symbol('access policy');

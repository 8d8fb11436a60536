import { NodeError } from '../errors.js';
import { baseStreamOf, isMetadataStream, type StreamAcl } from '../store/stream-metadata.js';
import type { StreamStates } from '../store/stream-states.js';
import type { Principal } from './users.js';

export type Right = 'read' | 'write' | 'delete';

const ALL_ROLES = '$all';
const ADMINS = '$admins';

/**
 * Who may do what with a stream: its `$acl` where it has one; else every user may use ordinary streams and only
 * administrators those that begin with `$`.
 */
export class Rights {
  constructor(readonly states: StreamStates) {}

  check(principal: Principal, right: Right, stream: string): void {
    if (principal.roles.has(ADMINS)) return;
    const allowed = this.#allowed(right, stream);
    if (allowed.includes(ALL_ROLES) || allowed.some((role) => principal.roles.has(role))) return;
    throw new NodeError(
      { code: 'access-denied' },
      `User '${principal.name}' may not ${right} stream '${stream}'.`,
    );
  }

  #allowed(right: Right, stream: string): readonly string[] {
    // Every user folds the log as a whole; what is in it holds no secret.
    if (stream === '$all') return right === 'read' ? [ALL_ROLES] : [];
    const meta = isMetadataStream(stream);
    const base = meta ? baseStreamOf(stream) : stream;
    const byAcl = aclEntry(this.states.metadata(base).acl, right, meta);
    return byAcl ?? [base.startsWith('$') ? ADMINS : ALL_ROLES];
  }
}

function aclEntry(acl: StreamAcl, right: Right, meta: boolean): readonly string[] | undefined {
  if (meta) return right === 'read' ? acl.metaRead : acl.metaWrite;
  return acl[right];
}

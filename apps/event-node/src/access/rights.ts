import { NodeError } from '../errors.js';
import { baseStreamOf, isMetadataStream, type StreamAcl } from '../store/stream-metadata.js';
import type { StreamStates } from '../store/stream-states.js';
import { isRole, roleMay } from './roles.js';
import { ADMINS, type Principal } from './users.js';

export type Right = 'read' | 'write' | 'delete';

const EVERYBODY = '$all';

/**
 * Who may do what with a stream: its `$acl` where it has one; else administrators everything, the product's own roles
 * what their table says, and streams that begin with `$` are the administrators' alone.
 */
export class Rights {
  constructor(readonly states: StreamStates) {}

  check(principal: Principal, right: Right, stream: string): void {
    if (principal.roles.has(ADMINS) || this.#may(principal, right, stream)) return;
    throw new NodeError(
      { code: 'access-denied' },
      `User '${principal.name}' may not ${right} stream '${stream}'.`,
    );
  }

  #may({ name, roles }: Principal, right: Right, stream: string): boolean {
    // Every user folds the log as a whole.
    if (stream === '$all') return right === 'read';
    const meta = isMetadataStream(stream);
    const base = meta ? baseStreamOf(stream) : stream;
    const byAcl = aclEntry(this.states.metadata(base).acl, right, meta);
    if (byAcl) return byAcl.includes(EVERYBODY) || byAcl.some((role) => roles.has(role));
    if (base.startsWith('$')) return false;
    return !isRole(name) || roleMay(name, right, base);
  }
}

function aclEntry(acl: StreamAcl, right: Right, meta: boolean): readonly string[] | undefined {
  if (meta) return right === 'read' ? acl.metaRead : acl.metaWrite;
  return acl[right];
}

import type { Rights } from '../access/rights.js';
import type { Principal, Users } from '../access/users.js';
import { type NodeError, notReady } from '../errors.js';
import type { EventStore } from '../store/event-store.js';

/** What every service of the node works with. */
export interface NodeContext {
  readonly store: EventStore;
  readonly users: Users;
  readonly rights: Rights;
  readonly calls: OpenCalls;
  readonly now: () => number;
}

/** The calls that are open, so that a shutdown can end each of them with a word instead of a broken connection. */
export class OpenCalls {
  readonly #open = new Set<(reason: NodeError) => void>();
  #stopping = false;

  get stopping(): boolean {
    return this.#stopping;
  }
  get size(): number {
    return this.#open.size;
  }

  /** Refuses when the node stops. The answer takes the call off the list. */
  enter(end: (reason: NodeError) => void): () => void {
    if (this.#stopping) throw notReady();
    this.#open.add(end);
    return () => this.#open.delete(end);
  }

  refuseNew(): void {
    this.#stopping = true;
  }

  endAll(reason: NodeError): void {
    for (const end of this.#open) end(reason);
    this.#open.clear();
  }
}

export function principalOf(context: NodeContext, authorization: string | undefined): Principal {
  return context.users.authenticate(authorization);
}

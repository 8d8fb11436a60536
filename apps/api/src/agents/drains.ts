import type { ResidentId, WorkerId } from '#domain/ids.js';
import type { Fleet } from '../fleet/fleet.js';
import type { AgentSessions } from './sessions.js';

/** How many calls this api has on a resident. */
export interface CallCount {
  inFlight(id: ResidentId): number;
}

/**
 * Evictions are drains: from the moment that the log (a decision's victim, an eviction begun) or an agent's question says
 * that a resident leaves, no call of this api goes there, and when none is on it any more the agent is told so.
 */
export class Drains {
  readonly #fleet: Fleet;
  readonly #sessions: AgentSessions;
  readonly #calls: CallCount;
  /** Asked on the line: evictions that no decision announced. */
  readonly #asked = new Map<ResidentId, WorkerId>();
  /** Told to the agent: by resident, since which revision it leaves. Another leaving is told again. */
  readonly #said = new Map<ResidentId, number>();

  constructor(fleet: Fleet, sessions: AgentSessions, calls: CallCount) {
    this.#fleet = fleet;
    this.#sessions = sessions;
    this.#calls = calls;
    fleet.listen({
      onWorkerEvent: (recorded, state) => {
        if (recorded.event.type === 'EvictionFailed') this.#asked.delete(recorded.event.data.residentId);
        this.#review(state.workerId);
      },
    });
    sessions.listen({
      onConnected: (worker) => {
        // A new session knows nothing of what the one before was told, and asks again for what it still wants.
        for (const [id, of] of this.#asked) if (of === worker) this.#asked.delete(id);
        for (const id of this.#fleet.worker(worker)?.residents.keys() ?? []) this.#said.delete(id);
        this.#review(worker);
      },
      onDrainAsked: (worker, id) => {
        this.#asked.set(id, worker);
        this.#settle(worker, id);
      },
    });
  }

  isLeaving(id: ResidentId): boolean {
    return this.#asked.has(id);
  }

  /** To be called when a call on the resident has ended. */
  callEnded(worker: WorkerId, id: ResidentId): void {
    this.#settle(worker, id);
  }

  #review(worker: WorkerId): void {
    const residents = this.#fleet.worker(worker)?.residents;
    for (const id of [...this.#said.keys()]) if (!this.#fleet.resident(id)) this.#said.delete(id);
    for (const [id, of] of this.#asked) if (of === worker && !residents?.has(id)) this.#asked.delete(id);
    for (const id of residents?.keys() ?? []) this.#settle(worker, id);
  }

  /** What the line asks for is told once the log says it too: the revision names which leaving is meant. */
  #settle(worker: WorkerId, id: ResidentId): void {
    const since = this.#fleet.worker(worker)?.residents.get(id)?.leaving?.sinceRevision;
    if (since === undefined || this.#said.get(id) === since || this.#calls.inFlight(id) > 0) return;
    if (this.#sessions.sayDrained(worker, id, since)) this.#said.set(id, since);
  }
}

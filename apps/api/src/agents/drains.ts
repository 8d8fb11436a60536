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
  readonly #said = new Set<ResidentId>();

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
      onDisconnected: () => undefined,
      onProgress: () => undefined,
      onDrainAsked: (worker, id) => {
        this.#asked.set(id, worker);
        this.#said.delete(id);
        this.#settle(worker, id);
      },
    });
  }

  isLeaving(id: ResidentId): boolean {
    return this.#asked.has(id);
  }

  /** To be called when a call on the resident has ended. */
  callEnded(worker: WorkerId, id: ResidentId): void {
    if (this.#asked.has(id) || this.#fleet.worker(worker)?.residents.get(id)?.leaving) {
      this.#settle(worker, id);
    }
  }

  #review(worker: WorkerId): void {
    const residents = this.#fleet.worker(worker)?.residents;
    for (const id of [...this.#said]) if (!this.#fleet.resident(id)) this.#said.delete(id);
    for (const [id, of] of this.#asked) if (of === worker && !residents?.has(id)) this.#asked.delete(id);
    for (const resident of residents?.values() ?? []) {
      if (resident.leaving) this.#settle(worker, resident.residentId);
      else if (!this.#asked.has(resident.residentId)) this.#said.delete(resident.residentId);
    }
  }

  #settle(worker: WorkerId, id: ResidentId): void {
    if (this.#said.has(id) || this.#calls.inFlight(id) > 0) return;
    if (this.#sessions.sayDrained(worker, id)) this.#said.add(id);
  }
}

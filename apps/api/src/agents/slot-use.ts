import type { ModelKey, ResidentId, WorkerId } from '#domain/ids.js';
import type { Resident } from '#domain/worker/state.js';
import type { Activity } from '../admission/activity.js';
import { slotsOf } from '../admission/reuse.js';
import type { Fleet } from '../fleet/fleet.js';
import type { AgentSessions } from './sessions.js';

/** What this api may use of the slots of one resident. */
interface Share {
  readonly workerId: WorkerId;
  readonly modelKey: ModelKey;
  readonly of: number;
  slots: number;
  /** Others wait: what is not in use goes back. */
  wanted: boolean;
  /** Of the last share heard. */
  number: number;
  said: string;
}

export interface SlotUseOptions {
  readonly sessions: Pick<AgentSessions, 'saySlots' | 'listen'>;
  readonly fleet: Pick<Fleet, 'worker'>;
  readonly activity: Pick<Activity, 'inFlight'>;
  /** Calls of a model that wait here. */
  readonly waitingFor: (model: ModelKey) => number;
  /** There may be a slot where there was none. */
  readonly onShare: () => void;
}

/**
 * The slots of an engine are one number, however many apis send it calls. An api that is alone with a worker counts for
 * itself, and nothing is said; several use what the worker's agent gave each of them. Without the agent they count for
 * themselves: an engine makes what is too much wait, and calls to what is loaded go on.
 */
export class SlotUse {
  readonly #o: SlotUseOptions;
  /** Workers that several apis send calls to. */
  readonly #shared = new Set<WorkerId>();
  readonly #shares = new Map<ResidentId, Share>();
  readonly #toSay = new Set<ResidentId>();
  #saying: NodeJS.Immediate | undefined;

  constructor(options: SlotUseOptions) {
    this.#o = options;
    options.sessions.listen({
      onDisconnected: (worker) => this.#alone(worker),
      onNeighbours: (worker, apis) => {
        if (apis < 2) this.#alone(worker);
        else this.#among(worker);
      },
      onShare: (_, { residentId, slots, number, wanted }) => {
        const share = this.#shares.get(residentId as ResidentId);
        if (!share) return;
        Object.assign(share, { slots: slots ?? 0, number: number ?? 0, wanted: wanted ?? false });
        if (share.wanted) this.#giveBack(residentId as ResidentId, share);
        options.onShare();
      },
    });
  }

  /** Slots of a resident that calls of this api may be on together. */
  allowed(worker: WorkerId, resident: Resident): number {
    const all = slotsOf(resident);
    if (!this.#shared.has(worker)) return all;
    return Math.min(all, this.#shares.get(resident.residentId)?.slots ?? 0);
  }

  /** A call found no slot here: the agent is asked for one. */
  ask(worker: WorkerId, resident: Resident): void {
    if (!this.#shared.has(worker)) return;
    this.#of(worker, resident);
    this.#say(resident.residentId);
  }

  /** A call has ended on the resident: its slot goes back when others wait, since they may have waited longer. */
  ended(id: ResidentId): void {
    const share = this.#shares.get(id);
    if (!share?.wanted) return;
    share.slots = Math.max(this.#o.activity.inFlight(id), share.slots - 1);
    this.#say(id);
  }

  forget(id: ResidentId): void {
    const share = this.#shares.get(id);
    if (!share) return;
    this.#shares.delete(id);
    this.#o.sessions.saySlots(share.workerId, { residentId: id, of: share.of, number: share.number });
  }

  close(): void {
    clearImmediate(this.#saying);
  }

  /** What neither a call is on nor one that waits will take. */
  #giveBack(id: ResidentId, share: Share): void {
    const used = this.#o.activity.inFlight(id) + this.#o.waitingFor(share.modelKey);
    if (used >= share.slots) return;
    share.slots = used;
    this.#say(id);
  }

  #alone(worker: WorkerId): void {
    if (!this.#shared.delete(worker)) return;
    for (const [id, { workerId }] of this.#shares) if (workerId === worker) this.#shares.delete(id);
    this.#o.onShare();
  }

  /** What is under way is held; the agent says what there is beside it. */
  #among(worker: WorkerId): void {
    if (this.#shared.has(worker)) return;
    this.#shared.add(worker);
    for (const resident of this.#o.fleet.worker(worker)?.residents.values() ?? []) {
      const inFlight = this.#o.activity.inFlight(resident.residentId);
      if (inFlight === 0) continue;
      this.#of(worker, resident).slots = inFlight;
      this.#say(resident.residentId);
    }
  }

  #of(workerId: WorkerId, resident: Resident): Share {
    const known = this.#shares.get(resident.residentId);
    if (known) return known;
    const { modelKey } = resident;
    const of = slotsOf(resident);
    const share = { workerId, modelKey, of, slots: 0, wanted: false, number: 0, said: '' };
    this.#shares.set(resident.residentId, share);
    return share;
  }

  /** Once for all that happens in one turn of the event loop. */
  #say(id: ResidentId): void {
    this.#toSay.add(id);
    this.#saying ??= setImmediate(() => {
      this.#saying = undefined;
      for (const each of this.#toSay) this.#saySlots(each);
      this.#toSay.clear();
    });
  }

  #saySlots(id: ResidentId): void {
    const share = this.#shares.get(id);
    if (!share) return;
    const { workerId, modelKey, of, slots: holds, number } = share;
    const waiting = this.#o.waitingFor(modelKey);
    const said = `${holds} ${waiting} ${number}`;
    if (said === share.said) return;
    share.said = said;
    this.#o.sessions.saySlots(workerId, { residentId: id, holds, waiting, of, number });
  }
}

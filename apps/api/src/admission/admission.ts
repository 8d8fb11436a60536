import { type BerthError, berthError } from '#domain/errors.js';
import type { CallId, ModelKey, ResidentId, WorkerId } from '#domain/ids.js';
import { formatSeconds } from '#domain/units.js';
import type { Resident } from '#domain/worker/state.js';
import type { Ticket } from '#placement/contract.js';
import { passQueue, type Turn } from '#placement/pass.js';
import { outputSeconds, type Prediction, ratesOf, soonest } from '#placement/predict.js';
import { orderQueue } from '#placement/queue.js';
import { longestSlotWait } from '#placement/second.js';
import type { Drains } from '../agents/drains.js';
import type { SlotUse } from '../agents/slot-use.js';
import type { CallHistories } from '../fleet/call-histories.js';
import type { Fleet } from '../fleet/fleet.js';
import type { Activity } from './activity.js';
import type { Decider, Evaluation } from './decider.js';
import type {
  AdmissionEnd,
  AdmissionWatch,
  AdmittedCall,
  Lease,
  PendingAdmission,
  QueuePlace,
  Wanted,
} from './port.js';
import { satisfies } from './reuse.js';
import type { TermsByWorker } from './terms.js';
import { QueuedCall } from './ticket.js';

export interface AdmissionOptions {
  readonly fleet: Fleet;
  readonly activity: Activity;
  readonly drains: Pick<Drains, 'isLeaving' | 'callEnded'>;
  readonly callHistories: CallHistories;
  readonly decider: Pick<Decider, 'evaluate' | 'second'>;
  readonly terms: TermsByWorker;
  readonly isConnected: (worker: WorkerId) => boolean;
  readonly slots: Pick<SlotUse, 'allowed' | 'ask' | 'ended'>;
  /** A call that says how long its resident is kept has ended on it. */
  readonly onKeepAlive?: () => void;
  readonly now: () => number;
}

/** What passes by time alone (deadlines, idle times, back-offs) is looked at this often, while somebody waits. */
const TICK_MS = 1000;
/** A resident that just failed a call is not tried again until the log says what became of it, or this long. */
const SUSPECT_MS = 5000;
/** Calls that end on busy residents wake the waiting at most this often. */
const WAKE_EVERY_MS = 25;

/**
 * The way of a call to a slot. A call whose model has a resident with a free slot goes straight through; the others are
 * tickets, in the order of placement's queue, and are looked at again whenever the fold or the activity changes.
 */
export class Admission {
  readonly #o: AdmissionOptions;
  readonly #tickets = new Set<QueuedCall>();
  readonly #perModel = new Map<ModelKey, number>();
  readonly #suspects = new Map<ResidentId, number>();
  #order: readonly QueuedCall[] = [];
  #arrivals = 0;
  #scheduled: NodeJS.Immediate | undefined;
  #wake: NodeJS.Timeout | undefined;
  #tick: NodeJS.Timeout | undefined;
  #closed: BerthError | undefined;

  constructor(options: AdmissionOptions) {
    this.#o = options;
    options.fleet.listen({ onChanged: () => this.schedule() });
  }

  /** A slot at once, or nothing: no queue, no lock, no promise. */
  grantNow(wanted: Wanted): Lease | undefined {
    if (this.#closed) return undefined;
    if (this.#tickets.size > 0) {
      // Nobody overtakes the calls that already wait for the same model, and background waits for the foreground.
      if (wanted.background || (this.#perModel.get(wanted.model.modelKey) ?? 0) > 0) return undefined;
    }
    return this.#grant(wanted);
  }

  enqueue(wanted: Wanted, watch: AdmissionWatch = {}): PendingAdmission {
    const now = this.#o.now();
    const call = new QueuedCall(wanted, (this.#arrivals += 1), now, watch);
    const full = this.#closed ?? this.#full(wanted);
    if (full) {
      call.settle({ kind: 'refused', error: full });
      return { ended: call.ended, leave: () => undefined, view: () => undefined };
    }
    this.#tickets.add(call);
    this.#count(call, 1);
    this.#tick ??= setInterval(() => this.schedule(), TICK_MS);
    this.schedule();
    return {
      ended: call.ended,
      leave: () => this.#end(call, { kind: 'left', ...queued(call) }),
      view: () => (this.#tickets.has(call) ? call.view() : undefined),
    };
  }

  /** An engine failed under a call before it said anything: no call goes there until the log says what became of it. */
  suspect(id: ResidentId): void {
    this.#suspects.set(id, this.#o.now() + SUSPECT_MS);
    this.schedule();
  }

  /** Looks at every ticket again, once, at the end of this turn of the event loop. */
  schedule(): void {
    if (this.#tickets.size === 0) return;
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined;
      this.#pass();
    });
  }

  /** Calls of a model that wait. */
  waitingFor(model: ModelKey): number {
    return this.#perModel.get(model) ?? 0;
  }

  /** Calls that wait, for whatever model. */
  get waiting(): number {
    return this.#tickets.size;
  }

  /** The queue in its order, for people. */
  get queue(): readonly QueuedCall[] {
    return this.#order.filter((call) => this.#tickets.has(call));
  }

  /** No ticket is taken any more, and those that wait are refused. */
  close(error: BerthError): void {
    this.#closed = error;
    for (const call of [...this.#tickets]) this.#refuse(call, error);
    clearInterval(this.#tick);
    clearTimeout(this.#wake);
    clearImmediate(this.#scheduled);
  }

  #pass(): void {
    const now = this.#o.now();
    const order = this.#ordered(now);
    this.#order = order;
    // The first call of a model that waits for a slot speaks for all of them.
    const slotless = new Set<ModelKey>();
    passQueue<QueuedCall>(
      order,
      {
        ticketOf: (call) => call.ticket,
        settingsOf: (call) => call.wanted.settings,
        grant: (call) => {
          const lease = this.#grant(call.wanted);
          if (lease) this.#admit(call, lease, now);
          return lease !== undefined;
        },
        look: (call, turn, place) => {
          if (!this.#tickets.has(call)) return 'settled';
          call.place = place;
          this.#look(call, turn, now);
          if (!this.#tickets.has(call)) return 'settled';
          const { modelKey } = call.ticket;
          if (
            call.phase === 'slot' &&
            turn.kind === 'decide' &&
            !call.ticket.background &&
            !slotless.has(modelKey)
          ) {
            slotless.add(modelKey);
            this.#second(call, turn.queue);
          }
          call.firstPlace ??= this.#placeOf(call, now);
          const { phase } = call;
          this.#expire(call, now);
          if (this.#tickets.has(call)) call.tell();
          return phase === 'waiting' ? 'waits' : 'settled';
        },
      },
      now,
    );
  }

  #look(call: QueuedCall, turn: Turn<QueuedCall>, now: number): void {
    const { wanted } = call;
    const there = this.#there(wanted);
    if (there) {
      this.#follow(call, there, now);
      return;
    }
    switch (turn.kind) {
      case 'background':
        call.enter('queued', `${turn.foreground} foreground calls come first`, now);
        return;
      case 'behind':
        call.enter('queued', `an overdue call to ${turn.overdue.ticket.modelKey} comes first`, now);
        return;
      case 'decide':
        this.#follow(call, this.#o.decider.evaluate(wanted, call.ticket, turn.queue), now);
        return;
    }
  }

  /** Calls wait for slots of a model that another worker could serve too. */
  #second(call: QueuedCall, queue: readonly Ticket[]): void {
    const { fleet, activity, callHistories, decider } = this.#o;
    const { wanted, ticket } = call;
    // With one worker there is none.
    if ((fleet.models.get(ticket.modelKey)?.workers.length ?? 0) < 2) return;
    const calls = callHistories.get(ticket.modelKey);
    const seconds = outputSeconds(ratesOf(calls), ticket);
    const ids = fleet
      .residentsOf(ticket.modelKey)
      .filter(({ resident }) => this.#stays(resident))
      .map(({ resident }) => resident.residentId);
    const endInSeconds = activity.endsIn(ids, calls);
    if (seconds === undefined || endInSeconds === undefined) return;
    const waiting = queue.filter((t) => t.modelKey === ticket.modelKey && !t.background).length;
    const waitSeconds = longestSlotWait({ endInSeconds, waiting, outputSeconds: seconds });
    if (decider.second(wanted, ticket, queue, { waiting, waitSeconds }))
      call.enter('slot', 'every slot of its model is taken; another worker loads it too', this.#o.now());
  }

  /** A resident that satisfies the ask and has no free slot yet, or is on its way. */
  #there(wanted: Wanted): Evaluation | undefined {
    const placed = this.#o.fleet
      .residentsOf(wanted.model.modelKey)
      .filter(
        ({ workerId, resident }) => this.#stays(resident) && this.#satisfies(workerId, resident, wanted),
      );
    const best = placed.find(({ resident }) => resident.phase === 'ready') ?? placed[0];
    if (!best) return undefined;
    const { workerId, resident } = best;
    if (resident.phase !== 'ready' && !this.#isDriven(workerId)) return undefined;
    return { kind: resident.phase === 'ready' ? 'reuse' : 'join', workerId, residentId: resident.residentId };
  }

  /** A load goes on only while its worker is there: without it the decider says how long it is waited for. */
  #isDriven(id: WorkerId): boolean {
    return this.#o.fleet.worker(id)?.lost === false && this.#o.isConnected(id);
  }

  #follow(call: QueuedCall, evaluation: Evaluation, now: number): void {
    switch (evaluation.kind) {
      case 'reuse': {
        const found = this.#o.fleet.resident(evaluation.residentId);
        const lease = found && this.#grantOn(found.workerId, found.resident, call.wanted);
        if (lease) this.#admit(call, lease, now);
        else if (this.#isSuspect(evaluation.residentId))
          call.enter('waiting', 'its engine just failed a call', now);
        else {
          call.enter('slot', 'every slot of its model is taken', now);
          if (found) this.#o.slots.ask(found.workerId, found.resident);
        }
        return;
      }
      case 'join':
        call.decidedAtMs ??= now;
        call.enter('loading', 'its model loads', now);
        call.loading = { residentId: evaluation.residentId, workerId: evaluation.workerId };
        return;
      case 'sizing':
      case 'deciding':
      case 'queued':
        call.enter(evaluation.kind, evaluation.why, now);
        return;
      case 'wait':
        call.enter('waiting', evaluation.why, now);
        call.freeInSeconds = evaluation.freeInSeconds;
        if (evaluation.againInMs !== undefined) this.#wakeIn(evaluation.againInMs);
        return;
      case 'refused':
        this.#refuse(call, evaluation.error, evaluation.decisionId);
        return;
    }
  }

  #grant(wanted: Wanted): Lease | undefined {
    for (const { workerId, resident } of this.#o.fleet.residentsOf(wanted.model.modelKey)) {
      if (resident.phase !== 'ready' || !this.#satisfies(workerId, resident, wanted)) continue;
      const lease = this.#grantOn(workerId, resident, wanted);
      if (lease) return lease;
    }
    return undefined;
  }

  #grantOn(workerId: WorkerId, resident: Resident, wanted: Wanted): Lease | undefined {
    const { residentId: id, modelKey } = resident;
    if (resident.phase !== 'ready' || !this.#stays(resident) || this.#isSuspect(id)) return undefined;
    if (this.#o.activity.inFlight(id) >= this.#o.slots.allowed(workerId, resident)) return undefined;
    const end = this.#o.activity.begin(id, modelKey, wanted);
    return {
      workerId,
      resident,
      release: () => {
        if (!end()) return;
        this.#o.slots.ended(id);
        this.#o.drains.callEnded(workerId, id);
        this.#slotFreed(id, modelKey);
        if (wanted.options.settings.idleUnloadSeconds !== undefined) this.#o.onKeepAlive?.();
      },
    };
  }

  #satisfies(workerId: WorkerId, resident: Resident, wanted: Wanted): boolean {
    if (wanted.worker !== undefined && wanted.worker !== workerId) return false;
    return satisfies(resident, wanted, this.#o.terms.of(wanted, workerId));
  }

  #stays(resident: Resident): boolean {
    return resident.leaving === undefined && !this.#o.drains.isLeaving(resident.residentId);
  }

  #isSuspect(id: ResidentId): boolean {
    const until = this.#suspects.get(id);
    if (until === undefined) return false;
    if (until > this.#o.now() && this.#o.fleet.resident(id)) return true;
    this.#suspects.delete(id);
    return false;
  }

  /** Its next ticket takes the slot at once; the others are woken when the resident has become idle. */
  #slotFreed(id: ResidentId, modelKey: ModelKey): void {
    if (this.#tickets.size === 0) return;
    if ((this.#perModel.get(modelKey) ?? 0) > 0) this.schedule();
    else if (this.#o.activity.inFlight(id) === 0) this.#wakeIn(WAKE_EVERY_MS);
  }

  #wakeIn(ms: number): void {
    this.#wake ??= setTimeout(() => {
      this.#wake = undefined;
      this.schedule();
    }, ms);
  }

  #ordered(now: number): readonly QueuedCall[] {
    const byId = new Map<CallId, QueuedCall>([...this.#tickets].map((call) => [call.wanted.callId, call]));
    const predictions = new Map<CallId, Prediction>();
    for (const call of this.#tickets) {
      const prediction = this.#predict(call, now);
      if (prediction) predictions.set(call.wanted.callId, prediction);
    }
    const tickets = [...this.#tickets].map((call) => call.ticket);
    return orderQueue(tickets, predictions, now, this.#o.terms.fleet).flatMap(
      (t) => byId.get(t.callId) ?? [],
    );
  }

  #predict(call: QueuedCall, now: number): Prediction | undefined {
    const { fleet, callHistories, activity } = this.#o;
    const { modelKey } = call.ticket;
    const mine = fleet.residentsOf(modelKey).map(({ resident }) => resident.residentId);
    const shared = {
      calls: new Map([[modelKey, callHistories.get(modelKey)]]),
      activity: activity.snapshot(mine, (key) => callHistories.get(key)),
      nowMs: now,
    };
    const workers = (fleet.models.get(modelKey)?.workers ?? []).flatMap((id) => fleet.worker(id) ?? []);
    return soonest(
      call.ticket,
      workers.map((worker) => ({ worker, histories: fleet.histories(worker.workerId), ...shared })),
    );
  }

  #placeOf(call: QueuedCall, now: number): QueuePlace {
    const prediction = this.#predict(call, now);
    return {
      position: call.place,
      kind: call.phase,
      why: call.why,
      ...(prediction
        ? {
            predictedReadySeconds: prediction.readyInSeconds,
            predictedLoadSeconds: prediction.loadSeconds,
            ...(prediction.outputSeconds === undefined
              ? {}
              : { predictedOutputSeconds: prediction.outputSeconds }),
          }
        : {}),
    };
  }

  #admit(call: QueuedCall, lease: Lease, now: number): void {
    const loaded = call.phase === 'loading' && call.loading?.residentId === lease.resident.residentId;
    const admitted: AdmittedCall = {
      lease,
      queuedAtMs: call.queuedAtMs,
      ...(call.decidedAtMs === undefined ? {} : { decidedAtMs: call.decidedAtMs }),
      ...(loaded ? { readyAtMs: now } : {}),
      ...(call.firstPlace ? { place: call.firstPlace } : {}),
    };
    this.#end(call, { kind: 'admitted', call: admitted });
  }

  #refuse(call: QueuedCall, error: BerthError, decisionId?: AdmissionRefusedId): void {
    this.#end(call, {
      kind: 'refused',
      error,
      ...(decisionId === undefined ? {} : { decisionId }),
      ...queued(call),
    });
  }

  #end(call: QueuedCall, end: AdmissionEnd): void {
    if (!this.#tickets.delete(call)) return;
    this.#count(call, -1);
    if (this.#tickets.size === 0) {
      clearInterval(this.#tick);
      this.#tick = undefined;
      clearTimeout(this.#wake);
      this.#wake = undefined;
    } else if (end.kind !== 'admitted') {
      this.schedule();
    }
    call.settle(end);
  }

  #expire(call: QueuedCall, now: number): void {
    const { maxWaitSeconds } = call.wanted.settings;
    const waited = call.waitedMs(now) / 1000;
    if (waited < maxWaitSeconds) return;
    const free = call.freeInSeconds;
    const message =
      `"${call.ticket.modelKey}" waited ${formatSeconds(waited)} for a place, which is as long as it may: ${call.why}.` +
      (free === undefined ? '' : ` Room is expected in about ${formatSeconds(free)}.`);
    this.#refuse(
      call,
      berthError('placement_timeout', message, { retryAfterSeconds: Math.max(1, free ?? 30) }),
    );
  }

  #full(wanted: Wanted): BerthError | undefined {
    const { maxQueue } = wanted.settings;
    if (this.#tickets.size < maxQueue) return undefined;
    const message = `The queue is full: ${this.#tickets.size} calls wait, and ${maxQueue} may. Try again shortly.`;
    return berthError('queue_full', message, { retryAfterSeconds: 10 });
  }

  #count(call: QueuedCall, by: number): void {
    const key = call.ticket.modelKey;
    const count = (this.#perModel.get(key) ?? 0) + by;
    if (count === 0) this.#perModel.delete(key);
    else this.#perModel.set(key, count);
  }
}

type AdmissionRefusedId = Extract<AdmissionEnd, { kind: 'refused' }>['decisionId'];

const queued = (call: QueuedCall): { queuedAtMs: number; place?: QueuePlace } => ({
  queuedAtMs: call.queuedAtMs,
  ...(call.firstPlace ? { place: call.firstPlace } : {}),
});

import type { PlacementDecidedData } from '#domain/events/worker-events.js';
import {
  decisionId,
  type CallId,
  type DeviceId,
  type ModelKey,
  type ResidentId,
  residentId,
} from '#domain/ids.js';
import type { PlacementOutcome, ResidentActivity, Ticket } from '../contract.js';
import { decide } from '../decide.js';
import { passQueue, type Turn } from '../pass.js';
import { freeInSeconds, type Prediction, soonest } from '../predict.js';
import { isOverdue, orderQueue } from '../queue.js';
import type { EffectiveSettings } from '../settings.js';
import { chooseWorker, offerOf } from '../workers.js';
import { BerthBooks, simCallId } from './berth-books.js';
import type { BerthFleet } from './berth-fleet.js';
import type { CallOutcome, SimCall } from './model.js';
import type { Scheduler } from './simulate.js';
import type { SimResident, World } from './world.js';

export interface BerthSchedulerOptions {
  readonly fleet: BerthFleet;
  readonly settings: EffectiveSettings;
  /** What the agent says that a model took, once it is loaded; default what it really took. */
  readonly measured?: (model: number, bytes: number) => number;
  /** Milliseconds of any clock: each decision is timed with it. */
  readonly clock?: () => number;
  readonly onDecision?: (decision: {
    readonly outcome: PlacementOutcome;
    readonly ms: number;
    readonly nowMs: number;
  }) => void;
}

interface Placed {
  readonly resident: SimResident;
  readonly data: PlacementDecidedData;
}

/**
 * Drives `decide` and the queue over the modelled fleet as the api drives them over a real one: a call whose model has
 * a free slot is served, the others are tickets in the order of the queue, looked at again when something changed.
 */
export class BerthScheduler implements Scheduler {
  readonly #o: BerthSchedulerOptions;
  readonly #world: World;
  readonly #books: BerthBooks;
  readonly #placed = new Map<number, Placed>();
  readonly #byId = new Map<ResidentId, SimResident>();
  /** Models of which tickets must be looked at; `all` after any change of the fleet. */
  readonly #changed = new Set<number>();
  #changedAll = false;
  #decisions = 0;

  constructor(world: World, options: BerthSchedulerOptions) {
    this.#o = options;
    this.#world = world;
    this.#books = new BerthBooks(options.fleet);
  }

  arrived(call: SimCall): void {
    this.#books.arrived(call, this.#key(call.model));
    this.#changed.add(call.model);
  }

  loadStarted(resident: SimResident): void {
    const placed = this.#placed.get(resident.id);
    if (placed) this.#books.loadStarted(resident.box, placed.data, this.#world.nowMs);
  }

  ready(resident: SimResident, seconds: number): void {
    this.#changedAll = true;
    const placed = this.#placed.get(resident.id);
    const [entry] = resident.bytes;
    if (!placed || !entry) return;
    const [deviceId, bytes] = entry;
    const measured = this.#o.measured?.(resident.model, bytes) ?? bytes;
    this.#books.ready(resident.box, placed.data, deviceId, measured, seconds, this.#world.nowMs);
  }

  loadFailed(resident: SimResident, seconds: number): void {
    this.#changedAll = true;
    const placed = this.#forget(resident);
    if (placed) this.#books.loadFailed(resident.box, placed.data, seconds, this.#world.nowMs);
  }

  gone(resident: SimResident): void {
    this.#changedAll = true;
    const placed = this.#forget(resident);
    if (placed) this.#books.gone(resident.box, placed.data.residentId, this.#world.nowMs);
  }

  ended(outcome: CallOutcome, resident: SimResident): void {
    const id = this.#placed.get(resident.id)?.data.residentId;
    this.#books.ended(outcome, this.#world.model(outcome.call.model), resident.box, id);
    this.#changed.add(outcome.call.model);
    if (this.#world.isIdle(resident)) this.#changedAll = true;
  }

  step(world: World): number | undefined {
    const { settings } = this.#o;
    if (world.waiting.size === 0) return undefined;
    const overdueAt = this.#nextDeadline();
    if (overdueAt.passed) this.#changedAll = true;
    while (this.#changedAll || this.#changed.size > 0) {
      const all = this.#changedAll;
      const models = new Set(this.#changed);
      this.#changedAll = false;
      this.#changed.clear();
      this.#pass(this.#ordered(settings), all ? undefined : models);
    }
    return this.#nextDeadline().nextMs;
  }

  /** Times at which tickets become overdue or have waited as long as they may. */
  #nextDeadline(): { readonly passed: boolean; readonly nextMs?: number } {
    const { overdueAfterSeconds, maxWaitSeconds } = this.#o.settings;
    const { nowMs } = this.#world;
    let passed = false;
    let nextMs = Infinity;
    for (const call of this.#world.waiting) {
      for (const seconds of [overdueAfterSeconds, maxWaitSeconds]) {
        const at = call.atMs + seconds * 1000;
        if (at === nowMs || (seconds === maxWaitSeconds && at < nowMs)) passed = true;
        else if (at > nowMs) nextMs = Math.min(nextMs, at);
      }
    }
    return nextMs === Infinity ? { passed } : { passed, nextMs };
  }

  #ordered(settings: EffectiveSettings): readonly SimCall[] {
    const byId = new Map<CallId, SimCall>();
    const predictions = new Map<CallId, Prediction>();
    const tickets: Ticket[] = [];
    for (const call of this.#world.waiting) {
      const ticket = this.#ticket(call);
      byId.set(ticket.callId, call);
      predictions.set(ticket.callId, this.#predict(ticket));
      tickets.push(ticket);
    }
    return orderQueue(tickets, predictions, this.#world.nowMs, settings).flatMap(
      (ticket) => byId.get(ticket.callId) ?? [],
    );
  }

  #predict(ticket: Ticket): Prediction {
    const views = this.#world.scenario.boxes.map((_, box) => ({
      worker: this.#books.worker(box),
      histories: this.#books.histories(box),
      calls: this.#books.calls,
      activity: this.#activity(box, ticket.modelKey),
      nowMs: this.#world.nowMs,
    }));
    return soonest(ticket, views) ?? { readyInSeconds: 0, loadSeconds: 0, resident: false };
  }

  #grant(call: SimCall): boolean {
    for (const { resident } of this.#placed.values()) {
      if (resident.model !== call.model || resident.phase !== 'ready' || resident.leaving) continue;
      if (resident.running.size >= resident.slots) continue;
      this.#world.serve(call, resident);
      return true;
    }
    return false;
  }

  /** @param only models whose tickets need be looked at, unless a call is granted a slot; undefined for all */
  #pass(order: readonly SimCall[], only: ReadonlySet<number> | undefined): void {
    const { nowMs } = this.#world;
    const { settings } = this.#o;
    const tickets = new Map(order.map((call) => [call, this.#ticket(call)]));
    const looked = new Set<number>();
    let granted = false;
    const acts = {
      ticketOf: (call: SimCall) => tickets.get(call) ?? this.#ticket(call),
      settingsOf: () => settings,
      grant: (call: SimCall) => {
        const served = this.#grant(call);
        granted ||= served;
        return served;
      },
      look: (call: SimCall, turn: Turn<SimCall>) => {
        if (turn.kind !== 'decide' || this.#isComing(call.model)) return 'settled';
        const ticket = acts.ticketOf(call);
        const skipped = only && !granted && !only.has(call.model) && !isOverdue(ticket, nowMs, settings);
        // The next call of a model would find what its first one found.
        if (looked.has(call.model) || skipped) return 'settled';
        looked.add(call.model);
        const outcome = this.#decide(call, ticket, turn.queue);
        if (outcome?.kind === 'wait') return 'waits';
        if (outcome?.kind !== 'decided' && outcome?.kind !== 'refused') return 'settled';
        this.#changedAll = true;
        return 'stop';
      },
    } as const;
    passQueue(order, acts, nowMs);
  }

  /** A resident of the model loads, or serves with every slot taken. */
  #isComing(model: number): boolean {
    for (const { resident } of this.#placed.values())
      if (resident.model === model && !resident.leaving) return true;
    return false;
  }

  #decide(call: SimCall, ticket: Ticket, queue: readonly Ticket[]): PlacementOutcome | undefined {
    const outcomes = this.#o.fleet.workers.map((_, box) => ({
      box,
      outcome: this.#decideOn(box, call, ticket, queue),
    }));
    const offers = outcomes.flatMap(({ box, outcome }) => {
      if (outcome.kind !== 'decided') return [];
      const { data } = outcome;
      const offer = offerOf(this.#books.worker(box), this.#books.histories(box), data, this.#world.nowMs);
      return [{ ...offer, box, outcome }];
    });
    const best = chooseWorker(offers);
    if (best) {
      this.#place(best.box, call.model, best.outcome.data);
      return best.outcome;
    }
    const other = outcomes.find(({ outcome }) => outcome.kind !== 'refused') ?? outcomes[0];
    if (other?.outcome.kind === 'refused') this.#world.refuse(call, other.outcome.data.code);
    return other?.outcome;
  }

  #decideOn(box: number, call: SimCall, ticket: Ticket, queue: readonly Ticket[]): PlacementOutcome {
    const { fleet, settings, clock, onDecision } = this.#o;
    const { nowMs } = this.#world;
    const model = fleet.models[call.model];
    const history = this.#books.histories(box).get(ticket.modelKey);
    if (!model || !history) throw new Error(`${ticket.modelKey} is not in the fleet`);
    const id = (this.#decisions += 1);
    const before = clock?.() ?? 0;
    const outcome = decide({
      worker: this.#books.worker(box),
      model,
      history,
      otherHistories: this.#books.histories(box),
      calls: this.#books.calls,
      activity: this.#activity(box),
      settings,
      ask: fleet.ask,
      cause: { kind: 'call', callId: ticket.callId },
      ticket,
      queue,
      unprojectable: NOTHING_PROJECTS,
      basedOn: [],
      decisionId: decisionId(`d${id}`),
      residentId: residentId(`r${id}`),
      nowMs,
    });
    onDecision?.({ outcome, ms: (clock?.() ?? 0) - before, nowMs });
    return outcome;
  }

  #place(box: number, model: number, data: PlacementDecidedData): void {
    const { nowMs } = this.#world;
    const [device] = data.devices;
    if (device === undefined) throw new Error('a modelled load is on a card');
    this.#books.decided(box, data, nowMs);
    const victims = data.victims.flatMap((v) => this.#byId.get(v.residentId)?.id ?? []);
    const bytes = new Map<DeviceId, number>([[device, this.#world.model(model).cardBytes]]);
    // Known before the world begins with it: a load without victims starts at once.
    const order = { box, model, bytes, slots: data.contract.slots, victims };
    this.#world.load(order, (resident) => {
      this.#placed.set(resident.id, { resident, data });
      this.#byId.set(data.residentId, resident);
    });
  }

  #forget(resident: SimResident): Placed | undefined {
    const placed = this.#placed.get(resident.id);
    this.#placed.delete(resident.id);
    if (placed) this.#byId.delete(placed.data.residentId);
    return placed;
  }

  #activity(box: number, only?: ModelKey): ReadonlyMap<ResidentId, ResidentActivity> {
    const all = new Map<ResidentId, ResidentActivity>();
    const { nowMs } = this.#world;
    for (const { resident, data } of this.#placed.values()) {
      if (resident.box !== box || (only !== undefined && data.modelKey !== only)) continue;
      if (resident.phase !== 'ready') continue;
      const ongoing = [...resident.running].map((call) => ({
        startedAtMs: this.#world.beganMs(call) ?? nowMs,
        promptTokens: call.promptTokens,
      }));
      const free = freeInSeconds(this.#books.calls.get(data.modelKey), ongoing, nowMs);
      all.set(data.residentId, {
        callsInFlight: resident.running.size,
        ...(resident.running.size === 0 ? { lastCallEndedAtMs: resident.usedMs } : {}),
        ...(free === undefined ? {} : { freeInSeconds: free }),
      });
    }
    return all;
  }

  #ticket(call: SimCall): Ticket {
    return {
      callId: simCallId(call),
      modelKey: this.#key(call.model),
      arrivedAtMs: call.atMs,
      arrival: call.index,
      background: false,
      promptTokens: call.promptTokens,
      ...(call.group === undefined ? {} : { group: call.group }),
    };
  }

  #key(model: number): ModelKey {
    return this.#world.model(model).modelKey;
  }
}

/** No engine is there to be asked for what a plan would take. */
const NOTHING_PROJECTS: ReadonlySet<string> = Object.assign(new Set<string>(), { has: () => true });

import type { PlacementDecidedData } from '#domain/events/worker-events.js';
import {
  decisionId,
  type CallId,
  type DeviceId,
  type ModelKey,
  type ResidentId,
  residentId,
} from '#domain/ids.js';
import { type DeviceBytes, sumOf } from '#domain/placement-terms.js';
import { initialHistory } from '#domain/history/history.js';
import type { BytesByDevice } from '../charges.js';
import type { PlacementOutcome, ResidentActivity, SoonnessOf, Ticket } from '../contract.js';
import { decide } from '../decide.js';
import { passQueue, type Turn } from '../pass.js';
import {
  endsInSeconds,
  freeInSeconds,
  type Ongoing,
  outputSeconds,
  type Prediction,
  ratesOf,
  soonest,
} from '../predict.js';
import { isOverdue, orderQueue } from '../queue.js';
import { isWorthSecond, longestSlotWait, MOST_RESIDENTS } from '../second.js';
import type { EffectiveSettings } from '../settings.js';
import { chooseWorker, isTooEarly, offerOf } from '../workers.js';
import { BerthBooks, simCallId } from './berth-books.js';
import { type BerthFleet, type FleetTerms, onCard, type Outside, type Takes } from './berth-fleet.js';
import type { CallOutcome, LoadOrder, SimCall } from './model.js';
import type { Scheduler } from './simulate.js';
import type { SimResident, World } from './world.js';
import { NOTHING_PROJECTS } from '../unprojectable.js';

export interface BerthSchedulerOptions {
  readonly fleet: BerthFleet;
  readonly settings: EffectiveSettings;
  /** What the agent says that a model took, once it is loaded; default what it really took. */
  readonly measured?: (model: number, bytes: number) => number;
  /** In the place of what the calls so far tell: what a decision would be with that known. */
  readonly soonnessOf?: SoonnessOf;
  /** Milliseconds of any clock: each decision is timed with it. */
  readonly clock?: () => number;
  /** Told of every event that the fleet would write to its log. */
  readonly onEvent?: ConstructorParameters<typeof BerthBooks>[1];
  /** Told of each placement that is taken: of what every worker offers at most one is. */
  readonly onPlaced?: (data: PlacementDecidedData) => void;
  readonly onDecision?: (decision: {
    readonly outcome: PlacementOutcome;
    readonly ms: number;
    readonly nowMs: number;
  }) => void;
}

interface Placed {
  readonly resident: SimResident;
  readonly residentId: ResidentId;
  readonly modelKey: ModelKey;
  readonly byDevice: readonly DeviceBytes[];
  /** Absent for one that was there at the beginning. */
  readonly data?: PlacementDecidedData;
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
  readonly #outside: Outside[];

  constructor(world: World, options: BerthSchedulerOptions) {
    this.#o = options;
    this.#world = world;
    this.#books = new BerthBooks(options.fleet, options.onEvent);
    for (const { box, model, resident, byDevice, tokenSeconds } of options.fleet.there ?? []) {
      const there = world.place({
        box,
        model,
        bytes: bytesOf(byDevice),
        slots: resident.measured?.slots ?? resident.contract.slots,
        ...(tokenSeconds === undefined ? {} : { tokenSeconds }),
      });
      const { residentId, modelKey } = resident;
      this.#placed.set(there.id, { resident: there, residentId, modelKey, byDevice });
      this.#byId.set(residentId, there);
    }
    this.#outside = [...(options.fleet.outside ?? [])];
    for (const { atMs } of this.#outside) world.wakeAt(atMs);
  }

  arrived(call: SimCall): void {
    this.#books.arrived(call, this.#key(call.model));
    this.#changed.add(call.model);
  }

  loadStarted(resident: SimResident): void {
    const data = this.#placed.get(resident.id)?.data;
    if (data) this.#books.loadStarted(resident.box, data, this.#world.nowMs);
  }

  ready(resident: SimResident, seconds: number): void {
    this.#changedAll = true;
    const placed = this.#placed.get(resident.id);
    if (placed?.data)
      this.#books.ready(resident.box, placed.data, placed.byDevice, seconds, this.#world.nowMs);
  }

  loadFailed(resident: SimResident, seconds: number): void {
    this.#changedAll = true;
    const placed = this.#forget(resident);
    if (placed?.data) this.#books.loadFailed(resident.box, placed.data, seconds, this.#world.nowMs);
  }

  gone(resident: SimResident): void {
    this.#changedAll = true;
    const placed = this.#forget(resident);
    if (placed) this.#books.gone(resident.box, placed.residentId, this.#world.nowMs);
  }

  ended(outcome: CallOutcome, resident: SimResident): void {
    const id = this.#placed.get(resident.id)?.residentId;
    this.#books.ended(outcome, this.#world.model(outcome.call.model), resident.box, id);
    this.#changed.add(outcome.call.model);
    if (this.#world.isIdle(resident)) this.#changedAll = true;
  }

  step(world: World): number | undefined {
    const { settings } = this.#o;
    this.#takeOutside();
    const idleMs = this.#unloadIdle();
    if (world.waiting.size === 0) return idleMs;
    const overdueAt = this.#nextDeadline();
    if (overdueAt.passed) this.#changedAll = true;
    while (this.#changedAll || this.#changed.size > 0) {
      const all = this.#changedAll;
      const models = new Set(this.#changed);
      this.#changedAll = false;
      this.#changed.clear();
      this.#pass(this.#ordered(settings), all ? undefined : models);
    }
    const { nextMs } = this.#nextDeadline();
    return idleMs === undefined ? nextMs : Math.min(idleMs, nextMs ?? Infinity);
  }

  #takeOutside(): void {
    const { nowMs } = this.#world;
    for (let next = this.#outside[0]; next && next.atMs <= nowMs; next = this.#outside[0]) {
      this.#outside.shift();
      this.#changedAll = true;
      const { box, what } = next;
      if ('event' in what) this.#books.outside(box, what.event, nowMs);
      else
        for (const { resident } of [...this.#placed.values()])
          if (resident.box === box && resident.model === what.ends) this.#end(resident);
    }
  }

  #end(resident: SimResident): void {
    if (resident.phase === 'ready' && !resident.leaving) this.#world.evict(resident);
  }

  /** @returns when the next resident will have been idle for as long as it may */
  #unloadIdle(): number | undefined {
    const { terms } = this.#o.fleet;
    if (!terms) return undefined;
    let nextMs: number | undefined;
    for (const { resident } of [...this.#placed.values()]) {
      if (resident.phase !== 'ready' || resident.leaving || !this.#world.isIdle(resident)) continue;
      const seconds = terms(resident.box, resident.model)?.idleUnloadSeconds;
      if (seconds === undefined) continue;
      const at = resident.usedMs + seconds * 1000;
      if (at <= this.#world.nowMs) this.#end(resident);
      else nextMs = Math.min(at, nextMs ?? Infinity);
    }
    return nextMs;
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
        if (turn.kind !== 'decide') return 'settled';
        const ticket = acts.ticketOf(call);
        const skipped = only && !granted && !only.has(call.model) && !isOverdue(ticket, nowMs, settings);
        // The next call of a model would find what its first one found.
        if (looked.has(call.model) || skipped) return 'settled';
        looked.add(call.model);
        if (this.#isComing(call.model)) {
          if (!this.#second(call, ticket, turn.queue)) return 'settled';
          this.#changedAll = true;
          return 'stop';
        }
        const outcome = this.#decide(call, ticket, turn.queue);
        if (outcome === 'wait') return 'waits';
        if (outcome !== 'decided' && outcome !== 'refused') return 'settled';
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

  #decide(call: SimCall, ticket: Ticket, queue: readonly Ticket[]): PlacementOutcome['kind'] | undefined {
    const { outcomes, offers } = this.#offers(call, ticket, queue);
    const there = outcomes.find(({ outcome }) => outcome.kind === 'reuse' || outcome.kind === 'join');
    if (there) return there.outcome.kind;
    const best = chooseWorker(offers);
    if (best) {
      if (isTooEarly(best) && !isOverdue(ticket, this.#world.nowMs, this.#o.settings)) return 'wait';
      this.#place(best.box, call.model, best.outcome.data);
      return best.outcome.kind;
    }
    const other = outcomes.find(({ outcome }) => outcome.kind !== 'refused') ?? outcomes[0];
    if (!other) this.#world.refuse(call, 'model_not_found');
    if (other?.outcome.kind === 'refused') this.#world.refuse(call, other.outcome.data.code);
    return other?.outcome.kind;
  }

  /** What each box decides, and what those offer that would place it. */
  #offers(
    call: SimCall,
    ticket: Ticket,
    queue: readonly Ticket[],
    on: (box: number) => boolean = () => true,
  ) {
    const outcomes = this.#o.fleet.workers.flatMap((_, box) => {
      const terms = on(box) ? this.#terms(box, call.model) : undefined;
      return terms ? [{ box, outcome: this.#decideOn(box, terms, ticket, queue) }] : [];
    });
    const offers = outcomes.flatMap(({ box, outcome }) => {
      if (outcome.kind !== 'decided') return [];
      const { data } = outcome;
      const offer = offerOf(this.#books.worker(box), this.#books.histories(box), data, this.#world.nowMs);
      return [{ ...offer, box, outcome }];
    });
    return { outcomes, offers };
  }

  /** Another resident of a model whose slots are all taken, on a box that has none, if it is worth its load. */
  #second(call: SimCall, ticket: Ticket, queue: readonly Ticket[]): boolean {
    const { nowMs } = this.#world;
    const mine = [...this.#placed.values()].filter(
      ({ resident }) => resident.model === call.model && !resident.leaving,
    );
    if (mine.length >= Math.min(MOST_RESIDENTS, this.#o.fleet.workers.length)) return false;
    if (ticket.background || mine.some(({ resident }) => resident.phase !== 'ready')) return false;
    const calls = this.#books.calls.get(ticket.modelKey);
    const each = outputSeconds(ratesOf(calls), ticket);
    const endInSeconds = endsInSeconds(
      calls,
      mine.flatMap(({ resident }) => this.#ongoing(resident)),
      nowMs,
    );
    if (each === undefined || endInSeconds === undefined) return false;
    const waiting = queue.filter((t) => t.modelKey === ticket.modelKey && !t.background).length;
    const there = new Set(mine.map(({ resident }) => resident.box));
    const offers = this.#offers(call, ticket, queue, (box) => !there.has(box)).offers;
    const best = chooseWorker(offers);
    const wait = longestSlotWait({ endInSeconds, waiting, outputSeconds: each });
    if (!best || !isWorthSecond(best, wait)) return false;
    this.#place(best.box, call.model, best.outcome.data);
    return true;
  }

  #terms(box: number, model: number): FleetTerms | undefined {
    const { fleet, settings } = this.#o;
    if (fleet.terms) return fleet.terms(box, model);
    const found = fleet.models[model];
    return found && { model: found, settings, ask: fleet.ask };
  }

  #decideOn(box: number, terms: FleetTerms, ticket: Ticket, queue: readonly Ticket[]): PlacementOutcome {
    const { clock, onDecision, soonnessOf } = this.#o;
    const { nowMs } = this.#world;
    const worker = this.#books.worker(box);
    const history =
      this.#books.histories(box).get(ticket.modelKey) ?? initialHistory(worker.workerId, ticket.modelKey);
    const id = (this.#decisions += 1);
    const before = clock?.() ?? 0;
    const outcome = decide({
      worker,
      ...terms,
      history,
      otherHistories: this.#books.histories(box),
      calls: this.#books.calls,
      activity: this.#activity(box),
      ...(soonnessOf ? { soonnessOf } : {}),
      cause: { kind: 'call', callId: ticket.callId },
      ticket,
      queue,
      unprojectable: NOTHING_PROJECTS,
      basedOn: [
        { stream: `worker-${worker.workerId}`, revision: worker.revision },
        { stream: `history-${worker.workerId}~${ticket.modelKey}`, revision: history.revision },
      ],
      decisionId: decisionId(`d${id}`),
      residentId: residentId(`r${id}`),
      nowMs,
    });
    onDecision?.({ outcome, ms: (clock?.() ?? 0) - before, nowMs });
    return outcome;
  }

  #place(box: number, model: number, data: PlacementDecidedData): void {
    const { nowMs } = this.#world;
    this.#books.decided(box, data, nowMs);
    this.#o.onPlaced?.(data);
    const victims = data.victims.flatMap((v) => this.#byId.get(v.residentId)?.id ?? []);
    const { bytes, byDevice, ...rest } = this.#takes(box, model, data);
    // Known before the world begins with it: a load without victims starts at once.
    const order = { box, model, bytes, slots: data.contract.slots, victims, ...rest };
    this.#world.load(order, (resident) => {
      const { residentId, modelKey } = data;
      this.#placed.set(resident.id, { resident, residentId, modelKey, byDevice, data });
      this.#byId.set(residentId, resident);
    });
  }

  #takes(box: number, model: number, data: PlacementDecidedData): Takes & Pick<LoadOrder, 'bytes'> {
    const { fleet, measured } = this.#o;
    if (fleet.takes) {
      const takes = fleet.takes(box, data);
      return { ...takes, bytes: bytesOf(takes.byDevice) };
    }
    const [device] = data.devices;
    if (device === undefined) throw new Error('a modelled load is on a card');
    const { cardBytes } = this.#world.model(model);
    return {
      bytes: new Map([[device, cardBytes]]),
      byDevice: onCard(device, measured?.(model, cardBytes) ?? cardBytes),
    };
  }

  #forget(resident: SimResident): Placed | undefined {
    const placed = this.#placed.get(resident.id);
    this.#placed.delete(resident.id);
    if (placed) this.#byId.delete(placed.residentId);
    return placed;
  }

  #activity(box: number, only?: ModelKey): ReadonlyMap<ResidentId, ResidentActivity> {
    const all = new Map<ResidentId, ResidentActivity>();
    const { nowMs } = this.#world;
    for (const { resident, residentId, modelKey } of this.#placed.values()) {
      if (resident.box !== box || (only !== undefined && modelKey !== only)) continue;
      if (resident.phase !== 'ready') continue;
      const ongoing = this.#ongoing(resident);
      const free = freeInSeconds(this.#books.calls.get(modelKey), ongoing, nowMs);
      all.set(residentId, {
        callsInFlight: resident.running.size,
        ...(resident.running.size === 0 ? { lastCallEndedAtMs: resident.usedMs } : {}),
        ...(free === undefined ? {} : { freeInSeconds: free }),
        ...(this.#isReadyBeside(resident) ? { alsoElsewhere: true as const } : {}),
      });
    }
    return all;
  }

  #isReadyBeside({ model, box }: SimResident): boolean {
    for (const { resident } of this.#placed.values())
      if (resident.model === model && resident.box !== box && resident.phase === 'ready' && !resident.leaving)
        return true;
    return false;
  }

  #ongoing(resident: SimResident): readonly Ongoing[] {
    return [...resident.running].map((call) => ({
      startedAtMs: this.#world.beganMs(call) ?? this.#world.nowMs,
      promptTokens: call.promptTokens,
    }));
  }

  #ticket(call: SimCall): Ticket {
    return {
      callId: simCallId(call),
      modelKey: this.#key(call.model),
      arrivedAtMs: call.atMs,
      arrival: call.index,
      background: call.background ?? false,
      promptTokens: call.estimatedTokens ?? call.promptTokens,
      ...(call.maxTokens === undefined ? {} : { maxTokens: call.maxTokens }),
      ...(call.group === undefined ? {} : { group: call.group }),
    };
  }

  #key(model: number): ModelKey {
    return this.#world.model(model).modelKey;
  }
}

const bytesOf = (byDevice: readonly DeviceBytes[]): BytesByDevice =>
  new Map(
    byDevice.map((on): [DeviceId, number] => [on.deviceId, sumOf(on)]).filter(([, bytes]) => bytes > 0),
  );

import type { FoundModel } from '#domain/events/catalog-events.js';
import type {
  DecisionCause,
  PlacementDecidedData,
  UnloadDecidedData,
  WorkerEventData,
} from '#domain/events/worker-events.js';
import { type BerthError, berthError } from '#domain/errors.js';
import {
  decisionId,
  type DecisionId,
  type ModelKey,
  type ResidentId,
  residentId,
  type WorkerId,
} from '#domain/ids.js';
import { classKey, type Contract, placementClassOf } from '#domain/placement-terms.js';
import type { WorkerState } from '#domain/worker/state.js';
import { appendDecision, type DecisionEvent } from '#events/decide-append.js';
import type { EventLog, NewEvent } from '#events/event-log.js';
import { streams } from '#events/streams.js';
import type { PlacementInput, PlacementOutcome, ResidentActivity, Ticket } from '#placement/contract.js';
import { noOptions } from '#placement/model-name.js';
import { isOverdue } from '#placement/queue.js';
import { placementPlanStillStands } from '#placement/still-stands.js';
import { isWorthSecond, MOST_RESIDENTS } from '#placement/second.js';
import { chooseWorker, isTooEarly, offerOf, type WorkerOffer } from '#placement/workers.js';
import { derivedId, newId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import type { AgentSessions } from '../agents/sessions.js';
import type { CallHistories } from '../fleet/call-histories.js';
import type { Fleet } from '../fleet/fleet.js';
import type { Activity } from './activity.js';
import { BackOff } from './back-off.js';
import { type Claim, CLAIM_HOLDS_MS, LoadClaims } from './load-claims.js';
import type { Wanted } from './port.js';
import { Refusals } from './refusals.js';
import type { Terms, TermsByWorker } from './terms.js';

/** What a ticket is told of itself. */
export type Evaluation =
  | { readonly kind: 'reuse' | 'join'; readonly workerId: WorkerId; readonly residentId: ResidentId }
  | { readonly kind: 'sizing' | 'deciding' | 'queued'; readonly why: string }
  | {
      readonly kind: 'wait';
      readonly why: string;
      readonly freeInSeconds?: number;
      readonly againInMs?: number;
    }
  | { readonly kind: 'refused'; readonly error: BerthError; readonly decisionId?: DecisionId };

type CoresRepinned = WorkerEventData<'CoresRepinned'> & { readonly decisionId: DecisionId };

/** A placement that no call asked for. */
export interface Proposal extends Terms {
  readonly model: FoundModel;
  readonly cause: DecisionCause;
}

export interface DeciderOptions {
  readonly fleet: Fleet;
  readonly log: EventLog;
  readonly sessions: AgentSessions;
  readonly activity: Activity;
  readonly callHistories: CallHistories;
  readonly terms: TermsByWorker;
  readonly decide: (input: PlacementInput) => PlacementOutcome;
  readonly logger: Logger;
  readonly now: () => number;
  /** Called when something that was started here has settled: evaluate again. */
  readonly onSettled: () => void;
}

/** A log that does not answer is waited for this long before calls that need a placement are told so. */
const LOG_GRACE_MS = 5000;
const LOG_RETRY_MS = 500;
/** Longer than an append with its repetitions may take: failures this close are one outage. */
const SAME_TROUBLE_MS = 15_000;
/** An agent that restarts, or that has not yet dialled a new api, is waited for this long. */
const AGENT_GRACE_MS = 15_000;
/** The end of a load is seen when it comes: this is for one that is never told. */
const TOO_EARLY_MS = 5000;
/** For all tries of one append together. */
const APPEND_DEADLINE_MS = 4000;
const UNPROJECTABLE_MS = 600_000;
/** Written again this often before its call is decided anew in any case. */
const MOST_CONFLICTS = 8;

/** Takes decisions for tickets: one at a time per worker, each appended before anybody acts on it. */
export class Decider {
  readonly #o: DeciderOptions;
  readonly #backOff: BackOff;
  readonly #refusals: Refusals;
  readonly #claims: LoadClaims;
  readonly #deciding = new Set<WorkerId>();
  readonly #projecting = new Set<string>();
  readonly #unprojectable = new Map<string, Map<string, number>>();
  #reading = false;
  /** Since when the log has not taken or given what a placement needs, and when that was last seen. */
  #trouble: { readonly sinceMs: number; readonly lastMs: number } | undefined;

  constructor(options: DeciderOptions) {
    this.#o = options;
    this.#backOff = new BackOff(options.fleet, options.now);
    this.#refusals = new Refusals(options.log, options.logger, options.now);
    this.#claims = new LoadClaims(options);
  }

  /**
   * Takes a decision that no call asked for, beside what is decided for calls: it evicts nobody, and is dropped where
   * anything is in its way.
   */
  propose(worker: WorkerState, proposal: Proposal): OnWorker['outcome'] {
    const outcome = this.consider(worker, proposal);
    if (outcome.kind === 'decided') {
      const { data } = outcome;
      void this.#append(worker, { type: 'PlacementDecided', data }, data.decisionId, (newer) =>
        placementPlanStillStands(data, newer),
      );
    }
    return outcome;
  }

  /** What `propose` would decide. Figures that only an engine can give are asked for, and are there another time. */
  consider(worker: WorkerState, proposal: Proposal): OnWorker['outcome'] {
    const id = worker.workerId;
    const { model, cause } = proposal;
    const key = model.modelKey;
    if (this.#deciding.has(id) || this.#outage() !== undefined) return { kind: 'deciding' };
    const held = this.#backOff.of(id, key);
    if (held) return { kind: 'held', ...held };
    if (!this.#read(key, [worker], [])) return { kind: 'deciding' };
    const outcome = this.#o.decide(this.#input(worker, model, proposal, [], cause));
    if (outcome.kind === 'project')
      for (const { artifact, contract } of outcome.wanted) this.#project(id, key, artifact, contract);
    return outcome;
  }

  /** Has a resident that nobody asks for leave, unless something about it changed meanwhile. */
  unload(worker: WorkerState, data: UnloadDecidedData, correlationId: string): void {
    if (this.#deciding.has(worker.workerId) || this.#outage() !== undefined) return;
    void this.#append(worker, { type: 'UnloadDecided', data }, correlationId, (newer) => {
      const resident = newer.residents.get(data.residentId);
      return resident?.phase === 'ready' && resident.leaving === undefined;
    });
  }

  /** Has a resident bound to other cores, as long as it is there and bound to those that it was found on. */
  repin(worker: WorkerState, data: CoresRepinned): void {
    if (this.#deciding.has(worker.workerId) || this.#outage() !== undefined) return;
    const id = data.decisionId;
    void this.#append(worker, { type: 'CoresRepinned', data }, id, (newer) => {
      const resident = newer.residents.get(data.residentId);
      return (
        resident !== undefined &&
        !resident.leaving &&
        (resident.cores ?? resident.contract.cores)?.join() === data.from.join()
      );
    });
  }

  /** What a decision about a model on a worker would be made from now: for people who ask what would become of it. */
  async inputFor(worker: WorkerState, model: FoundModel): Promise<PlacementInput> {
    const { callHistories } = this.#o;
    const keys = [model.modelKey, ...[...worker.residents.values()].map((r) => r.modelKey)];
    await callHistories.refresh(keys);
    return this.inputNow(worker, model);
  }

  /** The same of what is known at this moment: calls that were never looked at count as none. */
  inputNow(worker: WorkerState, model: FoundModel): PlacementInput {
    const own = this.#o.terms.of({ model, options: noOptions }, worker.workerId);
    return this.#input(worker, model, own, [], { kind: 'operator' });
  }

  evaluate(wanted: Wanted, ticket: Ticket, queue: readonly Ticket[]): Evaluation {
    const { fleet, sessions, now } = this.#o;
    const key = wanted.model.modelKey;
    const have = (fleet.models.get(key)?.workers ?? []).filter(
      (id) => wanted.worker === undefined || wanted.worker === id,
    );
    if (have.length === 0) {
      const message = `The model "${key}" is no longer on any worker's disk.`;
      return { kind: 'refused', error: berthError('model_not_found', message, { param: 'model' }) };
    }
    const outage = this.#outage();
    if (outage !== undefined) {
      // A log that is back within seconds costs a call its wait, as a load does, and not its answer.
      return now() - outage.sinceMs > LOG_GRACE_MS
        ? { kind: 'refused', error: logUnavailable(key) }
        : { kind: 'wait', why: 'the event log is being reached again', againInMs: LOG_RETRY_MS };
    }
    const workers = have.flatMap((id) => fleet.worker(id) ?? []).filter((w) => w.registered && !w.lost);
    const connected = workers.filter((w) => sessions.isConnected(w.workerId));
    if (connected.length === 0) return this.#nobody(key, have);
    const claimed = this.#claims.of(key);
    if (claimed) return { kind: 'wait', why: claimed.why, againInMs: claimed.inMs };
    if (!this.#read(key, connected, queue)) return { kind: 'queued', why: 'its history is being read' };
    const options = connected.map((worker) => this.#on(worker, wanted, ticket, queue));
    const best = this.#best(options, isOverdue(ticket, now(), wanted.settings));
    return best ? this.#follow(best, wanted) : this.#nobody(key, have);
  }

  /** What is there, then what comes, then the best offer, then what has to be waited for. */
  #best(options: readonly OnWorker[], overdue: boolean): OnWorker | undefined {
    const [first] = [...options].sort((a, b) => rank(a.outcome) - rank(b.outcome));
    if (first?.outcome.kind !== 'decided') return first;
    const best = this.#bestOffer(options);
    if (!best || overdue || !isTooEarly(best)) return best?.option;
    const why = 'room is made for it once what loads there is ready';
    return { worker: best.option.worker, outcome: { kind: 'held', why, inMs: TOO_EARLY_MS } };
  }

  #bestOffer(options: readonly OnWorker[]): (WorkerOffer & { readonly option: OnWorker }) | undefined {
    const { fleet, now } = this.#o;
    const offers = options.flatMap((option) => {
      const { worker, outcome } = option;
      if (outcome.kind !== 'decided') return [];
      return [{ ...offerOf(worker, fleet.histories(worker.workerId), outcome.data, now()), option }];
    });
    return chooseWorker(offers);
  }

  /**
   * Has another resident of a model loaded, on a worker that has none of it, when the wait for a slot of those that are
   * there is worth it.
   * @param forSlots how many calls wait for one, and how long the last of them is predicted to
   */
  second(
    wanted: Wanted,
    ticket: Ticket,
    queue: readonly Ticket[],
    forSlots: NonNullable<PlacementDecidedData['forSlots']>,
  ): boolean {
    const { fleet, sessions } = this.#o;
    const key = wanted.model.modelKey;
    const there = fleet.residentsOf(key).filter(({ resident }) => !resident.leaving);
    if (wanted.worker !== undefined || there.length >= MOST_RESIDENTS) return false;
    if (there.some(({ resident }) => resident.phase !== 'ready')) return false;
    if (this.#claims.of(key, this.#claims.residents(key))) return false;
    const others = (fleet.models.get(key)?.workers ?? []).flatMap((id) => fleet.worker(id) ?? []);
    const workers = others.filter(
      (w) =>
        w.registered &&
        !w.lost &&
        sessions.isConnected(w.workerId) &&
        !there.some(({ workerId }) => workerId === w.workerId),
    );
    if (workers.length === 0 || this.#outage() !== undefined || !this.#read(key, workers, queue))
      return false;
    const options = workers.map((worker) => this.#on(worker, wanted, ticket, queue));
    // One that is written now may be it.
    if (options.some(({ outcome }) => outcome.kind === 'deciding')) return false;
    const best = this.#bestOffer(options);
    if (best) {
      const { worker, outcome } = best.option;
      if (outcome.kind !== 'decided' || !isWorthSecond(best, forSlots.waitSeconds)) return false;
      this.#follow({ worker, outcome: { ...outcome, data: { ...outcome.data, forSlots } } }, wanted);
      return true;
    }
    const unsized = options.find(({ outcome }) => outcome.kind === 'project');
    if (unsized) this.#follow(unsized, wanted);
    return false;
  }

  #troubled(): void {
    const lastMs = this.#o.now();
    const before = this.#trouble;
    const goesOn = before !== undefined && lastMs - before.lastMs < SAME_TROUBLE_MS;
    this.#trouble = { sinceMs: goesOn ? before.sinceMs : lastMs, lastMs };
  }

  /** Between two tries of the log: it is known to be away, or failed a moment ago. */
  #outage(): { readonly sinceMs: number } | undefined {
    const away = this.#o.fleet.logAwaySinceMs;
    if (away !== undefined) return { sinceMs: away };
    return this.#trouble && this.#o.now() - this.#trouble.lastMs < LOG_RETRY_MS ? this.#trouble : undefined;
  }

  #on(worker: WorkerState, wanted: Wanted, ticket: Ticket, queue: readonly Ticket[]): OnWorker {
    const key = wanted.model.modelKey;
    if (this.#deciding.has(worker.workerId)) {
      return { worker, outcome: { kind: 'deciding' } };
    }
    const held = this.#backOff.of(worker.workerId, key);
    if (held) return { worker, outcome: { kind: 'held', ...held } };
    const model = this.#o.fleet.modelOn(worker.workerId, key) ?? wanted.model;
    const terms = this.#o.terms.of({ ...wanted, model }, worker.workerId);
    const { priority } = wanted.options.settings;
    const input = this.#input(
      worker,
      model,
      terms,
      queue,
      wanted.cause ?? { kind: 'call', callId: wanted.callId },
    );
    return {
      worker,
      outcome: this.#o.decide({
        ...input,
        ticket,
        ...(priority === undefined ? {} : { callPriority: priority }),
      }),
    };
  }

  #input(
    worker: WorkerState,
    model: FoundModel,
    { settings, ask }: Terms,
    queue: readonly Ticket[],
    cause: DecisionCause,
  ): PlacementInput {
    const { fleet, callHistories, terms, now } = this.#o;
    const key = model.modelKey;
    const history = fleet.history(worker.workerId, key);
    const residing = new Set<ModelKey>();
    for (const resident of worker.residents.values()) residing.add(resident.modelKey);
    const models = new Set<ModelKey>([key, ...residing]);
    const calls = new Map([...models].map((model) => [model, callHistories.get(model)]));
    return {
      worker,
      model,
      history,
      otherHistories: fleet.histories(worker.workerId),
      calls,
      activity: this.#activityOn(worker),
      settings,
      ask,
      residentPolicies: terms.policies(worker.workerId, residing),
      cause,
      queue,
      unprojectable: this.#unprojectableOn(worker.workerId, key),
      basedOn: [
        { stream: streams.worker(worker.workerId), revision: worker.revision },
        { stream: streams.catalog(worker.workerId), revision: fleet.catalogRevision(worker.workerId) },
        { stream: streams.history(worker.workerId, key), revision: history.revision },
        { stream: streams.calls(key), revision: callHistories.get(key).revision },
        ...this.#settingsRead(worker.workerId, key),
      ],
      decisionId: decisionId(newId()),
      residentId: residentId(newId()),
      nowMs: now(),
    };
  }

  #activityOn(worker: WorkerState): ReadonlyMap<ResidentId, ResidentActivity> {
    const { activity, callHistories, fleet } = this.#o;
    const all = new Map(activity.snapshot(worker.residents.keys(), (model) => callHistories.get(model)));
    for (const { residentId: id, modelKey } of worker.residents.values()) {
      const elsewhere = fleet
        .residentsOf(modelKey)
        .some((p) => p.workerId !== worker.workerId && p.resident.phase === 'ready' && !p.resident.leaving);
      if (elsewhere) all.set(id, { callsInFlight: 0, ...all.get(id), alsoElsewhere: true });
    }
    return all;
  }

  #settingsRead(worker: WorkerId, key: ModelKey): readonly { stream: string; revision: number }[] {
    return ['fleet', worker, `${worker}~${key}`].flatMap((scope) => {
      const state = this.#o.fleet.settings.of(scope);
      return state ? [{ stream: streams.settings(scope), revision: state.revision }] : [];
    });
  }

  #follow({ worker, outcome }: OnWorker, wanted: Wanted): Evaluation {
    const id = worker.workerId;
    switch (outcome.kind) {
      case 'reuse':
      case 'join':
        return { kind: outcome.kind, workerId: id, residentId: outcome.residentId };
      case 'deciding':
        return { kind: 'deciding', why: 'a decision for this worker is being written' };
      case 'held':
        return { kind: 'wait', why: outcome.why, againInMs: outcome.inMs };
      case 'project':
        for (const { artifact, contract } of outcome.wanted)
          this.#project(id, wanted.model.modelKey, artifact, contract);
        return { kind: 'sizing', why: 'the engine is asked what the model would take' };
      case 'decided':
        void this.#append(
          worker,
          { type: 'PlacementDecided', data: outcome.data },
          wanted.callId,
          (newer) => placementPlanStillStands(outcome.data, newer),
          this.#claimOf(id, wanted, outcome.data),
        );
        return { kind: 'deciding', why: 'its placement is being written' };
      case 'wait': {
        const { reason, freeInSeconds } = outcome;
        return { kind: 'wait', why: reason, ...(freeInSeconds === undefined ? {} : { freeInSeconds }) };
      }
      case 'refused':
        this.#refusals.record(id, outcome.data, wanted.callId);
        return { kind: 'refused', error: outcome.error, decisionId: outcome.data.decisionId };
    }
  }

  /**
   * A model that is cold everywhere, and its second resident, are claimed where more than one worker could load it; a call
   * that names its worker has no choice.
   */
  #claimOf(
    id: WorkerId,
    { model, worker }: Wanted,
    { decisionId, forSlots }: PlacementDecidedData,
  ): Claim | undefined {
    const { modelKey: key } = model;
    const have = this.#o.fleet.models.get(key)?.workers.length ?? 0;
    const there = this.#claims.residents(key);
    if (have < 2 || worker !== undefined || (there > 0 && forSlots === undefined)) return undefined;
    return { modelKey: key, workerId: id, decisionId, there };
  }

  async #append(
    worker: WorkerState,
    event:
      | Extract<DecisionEvent, { type: 'PlacementDecided' | 'UnloadDecided' }>
      | { readonly type: 'CoresRepinned'; readonly data: CoresRepinned },
    correlationId: string,
    stands: (newer: WorkerState) => boolean,
    claim?: Claim,
  ): Promise<void> {
    const { fleet, log, logger, now } = this.#o;
    const id = worker.workerId;
    // The same id at the same revision is taken once, however often it is tried.
    const decision: NewEvent<DecisionEvent> = {
      id: derivedId(event.type, event.data.decisionId),
      event,
      cause: { correlationId, causationId: correlationId },
    };
    this.#deciding.add(id);
    try {
      let { revision } = worker;
      const claimed = claim && (await this.#claims.take(claim, correlationId));
      if (claimed?.kind === 'unavailable') {
        logger.warn({ worker: id, why: claimed.message }, 'a load could not be claimed');
        this.#troubled();
      }
      if (claimed && claimed.kind !== 'taken') return;
      const claimedAtMs = now();
      for (let conflicts = 0; ; conflicts += 1) {
        const result = await appendDecision(log, streams.worker(id), revision, decision, {
          deadlineMs: APPEND_DEADLINE_MS,
        });
        if (result.kind === 'unavailable' || result.kind === 'refused') {
          logger.warn({ worker: id, why: result.message }, 'a decision could not be written');
          this.#troubled();
          return;
        }
        await fleet.catchUpWorker(id);
        this.#trouble = undefined;
        if (result.kind === 'done') return;
        // Others wrote first. When the plan still stands against the newer state it is written again; else its call is
        // decided anew.
        const newer = fleet.worker(id);
        const lapsed = claim && now() - claimedAtMs > CLAIM_HOLDS_MS;
        if (!newer || lapsed || conflicts >= MOST_CONFLICTS || !stands(newer)) {
          if (claim) this.#claims.giveUp(claim);
          return;
        }
        revision = newer.revision;
      }
    } catch (error) {
      logger.warn({ err: error, worker: id }, 'a decision was written, and could not be read back');
      this.#troubled();
    } finally {
      this.#deciding.delete(id);
      this.#o.onSettled();
    }
  }

  #project(id: WorkerId, key: ModelKey, artifact: string, contract: Contract): void {
    const ofClass = classKey(placementClassOf(artifact, contract));
    const running = `${id}|${key}|${ofClass}`;
    if (this.#projecting.has(running)) return;
    this.#projecting.add(running);
    void (async () => {
      try {
        const answer = await this.#o.sessions.project(id, key, artifact, contract);
        if (answer.ok) {
          await this.#o.fleet.catchUpHistory(id, key);
          const known = this.#o.fleet.history(id, key).projected.has(ofClass);
          if (!known) this.#cannotProject(id, key, ofClass, 'its figures did not reach the log');
        } else {
          this.#cannotProject(id, key, ofClass, answer.reason);
        }
      } catch (error) {
        this.#cannotProject(id, key, ofClass, error instanceof Error ? error.message : String(error));
      } finally {
        this.#projecting.delete(running);
        this.#o.onSettled();
      }
    })();
  }

  #cannotProject(id: WorkerId, key: ModelKey, ofClass: string, why: string): void {
    this.#o.logger.info(
      { worker: id, model: key, class: ofClass, why },
      'the engine cannot say what this takes',
    );
    const pair = `${id}|${key}`;
    const classes = this.#unprojectable.get(pair) ?? new Map<string, number>();
    this.#unprojectable.set(pair, classes.set(ofClass, this.#o.now() + UNPROJECTABLE_MS));
  }

  #unprojectableOn(id: WorkerId, key: ModelKey): ReadonlySet<string> {
    const now = this.#o.now();
    const classes = this.#unprojectable.get(`${id}|${key}`) ?? new Map<string, number>();
    return new Set([...classes].filter(([, until]) => until > now).map(([ofClass]) => ofClass));
  }

  /** Whether the call histories that a decision looks at are there; reads them when not. */
  #read(key: ModelKey, workers: readonly WorkerState[], queue: readonly Ticket[]): boolean {
    const { callHistories } = this.#o;
    const keys = new Set<ModelKey>([key, ...queue.map((ticket) => ticket.modelKey)]);
    for (const worker of workers) for (const r of worker.residents.values()) keys.add(r.modelKey);
    const stale = [...keys].filter((model) => !callHistories.isFresh(model));
    if (stale.length > 0 && !this.#reading) {
      this.#reading = true;
      void callHistories
        .refresh(stale)
        .catch((error: unknown) => {
          this.#o.logger.warn({ err: error }, 'the histories of calls could not be read');
          this.#troubled();
        })
        .finally(() => {
          this.#reading = false;
          this.#o.onSettled();
        });
    }
    return stale.every((model) => callHistories.isKnown(model));
  }

  #nobody(key: ModelKey, have: readonly WorkerId[]): Evaluation {
    const { fleet, sessions, now } = this.#o;
    const names = have.map((id) => fleet.worker(id)?.name ?? id).join(', ');
    const seen = Math.max(...have.map((id) => sessions.awaySinceMs(id) ?? now()));
    if (now() - seen < AGENT_GRACE_MS) {
      return { kind: 'wait', why: `the agent of ${names} is not connected yet`, againInMs: 500 };
    }
    const message =
      `Every worker that has "${key}" is out of reach (${names}): its agent has not been connected for ` +
      `${Math.round((now() - seen) / 1000)} s. Start it with \`berth agent\`, or see \`berth status\`.`;
    return { kind: 'refused', error: berthError('worker_unavailable', message, { retryAfterSeconds: 10 }) };
  }
}

interface OnWorker {
  readonly worker: WorkerState;
  readonly outcome:
    | PlacementOutcome
    | { readonly kind: 'deciding' }
    | { readonly kind: 'held'; readonly why: string; readonly inMs: number };
}

/** What is there, what comes, what can be placed, what must be waited for. */
function rank(outcome: OnWorker['outcome']): number {
  switch (outcome.kind) {
    case 'reuse':
      return 0;
    case 'join':
      return 1;
    case 'decided':
      return 2;
    case 'deciding':
      return 3;
    case 'project':
      return 4;
    case 'held':
      return 5;
    case 'wait':
      return 6;
    case 'refused':
      return 7;
  }
}

const logUnavailable = (key: ModelKey): BerthError =>
  berthError(
    'event_log_unavailable',
    `"${key}" is not loaded, and where to load it cannot be decided: the event log does not answer. ` +
      'Models that are loaded go on serving. See GET /health.',
    { retryAfterSeconds: 5 },
  );

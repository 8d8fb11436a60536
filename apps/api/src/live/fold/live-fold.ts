import { type CatalogState, evolveCatalog, initialCatalog } from '#domain/catalog/catalog.js';
import type {
  BerthEvent,
  CallEvent,
  CatalogEvent,
  FoundModel,
  OperatorEvent,
  PullEvent,
  Recorded,
  WorkerEvent,
} from '#domain/events/index.js';
import { type ModelKey, type ResidentId, workerId, type WorkerId } from '#domain/ids.js';
import { evolveOperator, initialOperator, type OperatorState } from '#domain/operator/operator.js';
import { evolvePulls, initialPulls, type PullsState } from '#domain/pulls/pulls.js';
import type {
  CallItem,
  DecisionItem,
  EvictionItem,
  LiveChange,
  LiveItems,
  LiveModel,
  LiveTopic,
  ResidentItem,
} from '#domain/wire/index.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { callAfter } from './call-items.js';
import { decisionAfter, decisionItem, evictionEnded, evictionItem } from './decision-items.js';
import { ItemList } from './item-list.js';
import { operatorItem, pullItem } from './other-items.js';
import { deviceItems, endedItem, noteFacts, residentItem, type ResidentFacts } from './resident-items.js';

/** What the log said before the fold begins: it goes on from there. */
export interface LiveBase {
  readonly workers: Iterable<WorkerState>;
  readonly catalogs: Iterable<CatalogState>;
}

const KEPT = 200;
type Category = 'worker' | 'calls' | 'catalog' | 'pull' | 'operator';

/** Streams that it is folded from. */
export const LIVE_PREFIXES: readonly string[] = ['worker-', 'calls-', 'catalog-', 'pull-', 'operator-'];

/**
 * Everything that `/live` tells of the log, folded once for all who look. Repetitions change nothing: it may begin with
 * states that are newer than the first events that it is given.
 */
export class LiveFold {
  readonly #workers = new Map<WorkerId, WorkerState>();
  readonly #catalogs = new Map<WorkerId, CatalogState>();
  readonly #pulls = new Map<WorkerId, PullsState>();
  readonly #operators = new Map<WorkerId, OperatorState>();
  readonly #facts = new Map<ResidentId, ResidentFacts>();
  /** When each resident's last call came: the list of calls forgets those of a resident that is seldom called. */
  readonly #lastCalls = new Map<ResidentId, string>();
  /** As told last, by worker and device. */
  readonly #devices = new Map<string, string>();
  readonly #calls = new ItemList<CallItem>(KEPT, (call) => call.state !== 'running');
  readonly #decisions = new ItemList<DecisionItem>(KEPT, (decision) => decision.state !== 'open');
  readonly #evictions = new ItemList<EvictionItem>(KEPT, (eviction) => eviction.state !== 'running');
  readonly #evicting = new Map<ResidentId, string>();
  #changes: LiveChange[] = [];
  #position = '';

  constructor(base: LiveBase) {
    for (const worker of base.workers) {
      this.#workers.set(worker.workerId, worker);
      this.#tellDevices(worker);
    }
    for (const catalog of base.catalogs) this.#catalogs.set(catalog.workerId, catalog);
    this.#changes = [];
  }

  /** Folds one event. @returns what it changed, in order. */
  apply(recorded: Recorded<BerthEvent>): readonly LiveChange[] {
    const cut = recorded.stream.indexOf('-');
    const category = recorded.stream.slice(0, cut) as Category;
    const id = workerId(recorded.stream.slice(cut + 1));
    this.#changes = [];
    this.#position = recorded.position.commit.toString();
    switch (category) {
      case 'worker':
        this.#worker(id, recorded as Recorded<WorkerEvent>);
        break;
      case 'calls':
        this.#call(recorded.event as CallEvent);
        break;
      case 'catalog':
        this.#catalog(id, recorded as Recorded<CatalogEvent>);
        break;
      case 'pull':
        this.#pull(id, recorded as Recorded<PullEvent>);
        break;
      case 'operator':
        this.#operator(id, recorded as Recorded<OperatorEvent>);
        break;
    }
    return this.#changes;
  }

  /** Decisions and evictions of a worker's past, which its state no longer has. Oldest first, before any `apply`. */
  remember(id: WorkerId, past: readonly Recorded<WorkerEvent>[]): void {
    for (const recorded of past) this.#past(id, recorded);
    const residents = this.#workers.get(id)?.residents;
    for (const known of this.#facts.keys()) if (residents?.has(known) !== true) this.#facts.delete(known);
    this.#changes = [];
  }

  /** What the worker's state has already. */
  #past(id: WorkerId, recorded: Recorded<WorkerEvent>): void {
    noteFacts(this.#facts, recorded);
    this.#decision(id, recorded, undefined);
    this.#eviction(id, recorded);
  }

  items<T extends LiveTopic>(topic: T): readonly LiveItems[T][] {
    const all: { readonly [K in LiveTopic]: () => readonly LiveItems[K][] } = {
      residents: () =>
        [...this.#workers.values()].flatMap((worker) =>
          [...worker.residents.values()].map((resident) => this.#residentItem(worker, resident)),
        ),
      devices: () => [...this.#workers.values()].flatMap(deviceItems),
      calls: () => this.#calls.all,
      decisions: () => this.#decisions.all,
      evictions: () => this.#evictions.all,
      pulls: () =>
        [...this.#pulls.values()].flatMap(({ workerId: of, pulls }) =>
          [...pulls.values()].map((pull) => pullItem(of, pull)),
        ),
      operator: () =>
        [...this.#operators.values()].flatMap(({ workerId: of, actions }) =>
          [...actions.values()].map((action) => operatorItem(of, action)),
        ),
      models: () =>
        [...this.#catalogs.values()].flatMap(({ workerId: of, models }) =>
          [...models.values()].map((model) => modelItem(of, model)),
        ),
    };
    return all[topic]();
  }

  #tell<T extends LiveTopic>(topic: T, item: LiveItems[T]): void {
    this.#changes.push({ topic, position: this.#position, item } as LiveChange);
  }

  #worker(id: WorkerId, recorded: Recorded<WorkerEvent>): void {
    const before = this.#workers.get(id) ?? initialWorker(id);
    const after = evolveWorker(before, recorded);
    // Written twice by a retry.
    const isRepeated = after !== before && before.seen.includes(recorded.id);
    if (after === before) this.#past(id, recorded);
    if (after === before || isRepeated) {
      this.#workers.set(id, after);
      return;
    }
    this.#workers.set(id, after);
    const { data } = recorded.event;
    const isHere = 'residentId' in data && after.residents.has(data.residentId);
    const noted = isHere ? noteFacts(this.#facts, recorded) : undefined;
    this.#decision(id, recorded, before);
    this.#eviction(id, recorded);
    const renamed = after.name !== before.name;
    if (after.residents !== before.residents || noted !== undefined || renamed) {
      for (const [residentId, resident] of after.residents) {
        if (before.residents.get(residentId) === resident && residentId !== noted && !renamed) continue;
        this.#tell('residents', this.#residentItem(after, resident));
      }
      for (const [residentId, resident] of before.residents) {
        if (after.residents.has(residentId)) continue;
        const last = this.#residentItem(before, resident);
        this.#tell('residents', endedItem(last, recorded));
        this.#facts.delete(residentId);
        this.#lastCalls.delete(residentId);
      }
    }
    this.#tellDevices(after);
  }

  #residentItem(worker: WorkerState, resident: Resident): ResidentItem {
    const lastCallAt = this.#lastCalls.get(resident.residentId);
    const item = residentItem(worker, resident, this.#facts.get(resident.residentId));
    return lastCallAt === undefined ? item : { ...item, lastCallAt };
  }

  #tellDevices(worker: WorkerState): void {
    for (const item of deviceItems(worker)) {
      const key = `${item.workerId}|${item.deviceId}`;
      const text = JSON.stringify(item);
      if (this.#devices.get(key) === text) continue;
      this.#devices.set(key, text);
      this.#tell('devices', item);
    }
  }

  #decision(id: WorkerId, recorded: Recorded<WorkerEvent>, before: WorkerState | undefined): void {
    const { event } = recorded;
    if (event.type === 'PlacementDecided' || event.type === 'PlacementRefused') {
      if (this.#decisions.get(event.data.decisionId)) return;
      this.#putDecision(decisionItem(id, { ...recorded, event }));
      return;
    }
    const resident = 'residentId' in event.data ? before?.residents.get(event.data.residentId) : undefined;
    const named = 'decisionId' in event.data ? event.data.decisionId : undefined;
    // An eviction names the decision that wanted it, which is not the one that it ends.
    const decisionId =
      event.type === 'DecisionClosed' || event.type === 'LoadStarted'
        ? named
        : (resident?.decisionId ?? this.#openOf(event));
    const open = decisionId === undefined ? undefined : this.#decisions.get(decisionId);
    if (open?.state !== 'open') return;
    const startedAt =
      'residentId' in event.data ? this.#facts.get(event.data.residentId)?.loadStartedAt : undefined;
    const after = decisionAfter(open, recorded, startedAt);
    if (after) this.#putDecision(after);
  }

  /** Of a past that has no states: by the resident that the decision was to make. */
  #openOf(event: WorkerEvent): string | undefined {
    if (!('residentId' in event.data)) return undefined;
    const { residentId } = event.data;
    return this.#decisions.all.find((d) => d.state === 'open' && d.residentId === residentId)?.decisionId;
  }

  #putDecision(item: DecisionItem): void {
    this.#decisions.put(item.decisionId, item);
    this.#tell('decisions', item);
  }

  #eviction(id: WorkerId, recorded: Recorded<WorkerEvent>): void {
    const { event } = recorded;
    if (!('residentId' in event.data)) return;
    const { residentId } = event.data;
    const runningId = this.#evicting.get(residentId);
    const running = runningId === undefined ? undefined : this.#evictions.get(runningId);
    if (event.type === 'EvictionStarted') {
      if (!running)
        this.#putEviction(evictionItem(id, { ...recorded, event }, this.#modelOf(id, residentId)));
    } else if (event.type === 'ResidentEvicted' || event.type === 'EvictionFailed') {
      const begun = running ?? evictionItem(id, { ...recorded, event }, this.#modelOf(id, residentId));
      this.#putEviction(evictionEnded(begun, recorded));
    } else if (running && (event.type === 'ResidentCrashed' || event.type === 'ResidentFoundGone')) {
      this.#putEviction(evictionEnded(running, recorded));
    }
  }

  #modelOf(id: WorkerId, residentId: ResidentId): ModelKey | undefined {
    return (
      this.#workers.get(id)?.residents.get(residentId)?.modelKey ??
      (this.#decisions.all.findLast((d) => d.residentId === residentId)?.modelKey as ModelKey | undefined)
    );
  }

  #putEviction(item: EvictionItem): void {
    this.#evictions.put(item.evictionId, item);
    if (item.state === 'running') this.#evicting.set(item.residentId as ResidentId, item.evictionId);
    else this.#evicting.delete(item.residentId as ResidentId);
    this.#tell('evictions', item);
  }

  #call(event: CallEvent): void {
    const after = callAfter(this.#calls.get(event.data.callId), event);
    if (!after) return;
    this.#calls.put(after.callId, after);
    this.#noteCall(after);
    this.#tell('calls', after);
  }

  #noteCall({ workerId: worker, residentId, receivedAt }: CallItem): void {
    if (worker === undefined || residentId === undefined) return;
    const id = residentId as ResidentId;
    // What has ended by now is not listed, and would be kept for ever.
    if (this.#workers.get(worker as WorkerId)?.residents.has(id) !== true) return;
    if (receivedAt > (this.#lastCalls.get(id) ?? '')) this.#lastCalls.set(id, receivedAt);
  }

  #catalog(id: WorkerId, recorded: Recorded<CatalogEvent>): void {
    const before = this.#catalogs.get(id) ?? initialCatalog(id);
    const after = evolveCatalog(before, recorded);
    this.#catalogs.set(id, after);
    if (after === before || !('modelKey' in recorded.event.data)) return;
    const key = recorded.event.data.modelKey;
    const [was, is] = [before.models.get(key), after.models.get(key)];
    if (is && is !== was) this.#tell('models', modelItem(id, is));
    else if (was && !is) this.#tell('models', { ...modelItem(id, was), gone: true });
  }

  #pull(id: WorkerId, recorded: Recorded<PullEvent>): void {
    const before = this.#pulls.get(id) ?? initialPulls(id);
    const after = evolvePulls(before, recorded);
    this.#pulls.set(id, after);
    const pull = after.pulls.get(recorded.event.data.pullId);
    if (pull && pull !== before.pulls.get(pull.pullId)) this.#tell('pulls', pullItem(id, pull));
  }

  #operator(id: WorkerId, recorded: Recorded<OperatorEvent>): void {
    const before = this.#operators.get(id) ?? initialOperator(id);
    const after = evolveOperator(before, recorded);
    this.#operators.set(id, after);
    const action = after.actions.get(recorded.event.data.actionId);
    if (action && action !== before.actions.get(action.actionId))
      this.#tell('operator', operatorItem(id, action));
  }
}

const modelItem = (of: WorkerId, model: FoundModel): LiveModel => ({
  workerId: of,
  modelKey: model.modelKey,
  kind: model.kind,
  smoke: model.smoke === true,
  artifacts: model.artifacts.map(({ label, files, complete }) => ({
    label,
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    complete,
  })),
  gone: false,
});

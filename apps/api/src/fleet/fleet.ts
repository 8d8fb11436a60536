import { evolveCatalog, initialCatalog, type CatalogState } from '#domain/catalog/catalog.js';
import type {
  BerthEvent,
  CatalogEvent,
  FleetEvent,
  FoundModel,
  HistoryEvent,
  LogPosition,
  Recorded,
  WorkerEvent,
} from '#domain/events/index.js';
import type { KeyEvent, SettingsEvent } from '#domain/events/other-events.js';
import { evolveFleet, initialFleet, type FleetState } from '#domain/fleet/fleet.js';
import { evolveHistory, initialHistory, type PairHistory } from '#domain/history/history.js';
import { type ModelKey, type ResidentId, workerId, type WorkerId } from '#domain/ids.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import type { EventLog, Subscription } from '#events/event-log.js';
import { parseHistoryStream, streams } from '#events/streams.js';
import { Keyring } from '../access/keyring.js';
import { FoldedSettings } from './settings.js';

const SETTINGS = streams.settings('');
const KEY = streams.key('');
const PREFIXES = ['worker-', 'catalog-', 'history-', SETTINGS, KEY, streams.apis];

export interface PlacedResident {
  readonly workerId: WorkerId;
  readonly resident: Resident;
}

export interface ServableModel {
  readonly model: FoundModel;
  /** Who has it on disk. */
  readonly workers: readonly WorkerId[];
  /** When it was first found, ms since 1970. */
  readonly foundAtMs: number;
}

export interface FleetListener {
  /** Something that a decision is made from changed. */
  onChanged?(): void;
  /** One event of a worker was folded; the state is the one after it. */
  onWorkerEvent?(recorded: Recorded<WorkerEvent>, state: WorkerState): void;
}

/**
 * What the log says of workers, their models, their histories and the apis, folded by one subscription and kept warm.
 * The revision of a worker's fold is what decisions expect.
 */
export class Fleet {
  readonly #log: EventLog;
  readonly #listeners = new Set<FleetListener>();
  readonly #workers = new Map<WorkerId, WorkerState>();
  readonly #catalogs = new Map<WorkerId, CatalogState>();
  readonly #histories = new Map<WorkerId, Map<ModelKey, PairHistory>>();
  readonly settings = new FoldedSettings();
  readonly keys = new Keyring();
  readonly #foundAt = new Map<string, number>();
  #apis: FleetState = initialFleet();
  #models: ReadonlyMap<ModelKey, ServableModel> | undefined;
  #byModel: Map<ModelKey, PlacedResident[]> | undefined;
  #subscription: Subscription | undefined;
  #awaySinceMs: number | undefined;
  #position: LogPosition | undefined;

  constructor(log: EventLog) {
    this.#log = log;
  }

  /** Resolves when everything written so far is folded. Rejects when the log ends the subscription for good. */
  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#subscription = this.#log.subscribeAll(PREFIXES, {
        onEvent: (recorded) => {
          this.#fold(recorded);
          this.#position = recorded.position;
        },
        onCheckpoint: (position) => {
          this.#position = position;
        },
        onCaughtUp: () => resolve(),
        onConnected: (connected) => {
          this.#awaySinceMs = connected ? undefined : (this.#awaySinceMs ?? Date.now());
          this.#tell((l) => l.onChanged?.());
        },
      });
      this.#subscription.ended.catch((error: unknown) => {
        reject(error instanceof Error ? error : new Error(String(error)));
      });
    });
  }

  async stop(): Promise<void> {
    await this.#subscription?.stop();
  }

  listen(listener: FleetListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Since when the log has been out of reach, ms since 1970; undefined while it answers. */
  get logAwaySinceMs(): number | undefined {
    return this.#awaySinceMs;
  }

  /** Everything up to it is folded, or none of the fleet's; undefined before the first event. */
  get position(): LogPosition | undefined {
    return this.#position;
  }

  get catalogs(): ReadonlyMap<WorkerId, CatalogState> {
    return this.#catalogs;
  }

  get apis(): FleetState {
    return this.#apis;
  }

  get workers(): ReadonlyMap<WorkerId, WorkerState> {
    return this.#workers;
  }

  worker(id: WorkerId): WorkerState | undefined {
    return this.#workers.get(id);
  }

  catalogRevision(id: WorkerId): number {
    return this.#catalogs.get(id)?.revision ?? -1;
  }

  history(id: WorkerId, key: ModelKey): PairHistory {
    return this.#histories.get(id)?.get(key) ?? initialHistory(id, key);
  }

  histories(id: WorkerId): ReadonlyMap<ModelKey, PairHistory> {
    return this.#histories.get(id) ?? new Map<ModelKey, PairHistory>();
  }

  /** Every model on any disk of the fleet, by key. */
  get models(): ReadonlyMap<ModelKey, ServableModel> {
    return (this.#models ??= this.#mergeModels());
  }

  modelsOn(id: WorkerId): readonly FoundModel[] {
    return [...(this.#catalogs.get(id)?.models.values() ?? [])];
  }

  modelOn(id: WorkerId, key: ModelKey): FoundModel | undefined {
    return this.#catalogs.get(id)?.models.get(key);
  }

  /** Residents of a model in any phase, on any worker. */
  residentsOf(key: ModelKey): readonly PlacedResident[] {
    this.#byModel ??= this.#indexResidents();
    return this.#byModel.get(key) ?? [];
  }

  resident(id: ResidentId): PlacedResident | undefined {
    for (const state of this.#workers.values()) {
      const resident = state.residents.get(id);
      if (resident) return { workerId: state.workerId, resident };
    }
    return undefined;
  }

  /** Reads what is newer in a stream than its fold, without waiting for the subscription. */
  async catchUpWorker(id: WorkerId): Promise<void> {
    await this.#catchUp(streams.worker(id), this.#workers.get(id)?.revision ?? -1);
  }

  async catchUpHistory(id: WorkerId, key: ModelKey): Promise<void> {
    await this.#catchUp(streams.history(id, key), this.history(id, key).revision);
  }

  async catchUpKey(keyId: string): Promise<void> {
    await this.#catchUp(streams.key(keyId), this.keys.of(keyId).revision);
  }

  async catchUpSettings(scope: string): Promise<void> {
    await this.#catchUp(streams.settings(scope), this.settings.of(scope)?.revision ?? -1);
  }

  async #catchUp(stream: string, revision: number): Promise<void> {
    for await (const recorded of this.#log.readForwards(stream, { fromRevision: revision + 1 })) {
      this.#fold(recorded);
    }
  }

  #fold(recorded: Recorded<BerthEvent>): void {
    const { stream } = recorded;
    if (stream.startsWith('worker-')) {
      this.#foldWorker(workerId(stream.slice('worker-'.length)), recorded as Recorded<WorkerEvent>);
    } else if (stream.startsWith('catalog-')) {
      this.#foldCatalog(workerId(stream.slice('catalog-'.length)), recorded as Recorded<CatalogEvent>);
    } else if (stream.startsWith('history-')) {
      this.#foldHistory(recorded as Recorded<HistoryEvent>);
    } else if (stream.startsWith(SETTINGS)) {
      this.settings.fold(stream.slice(SETTINGS.length), recorded as Recorded<SettingsEvent>);
    } else if (stream.startsWith(KEY)) {
      this.keys.fold(stream.slice(KEY.length), recorded as Recorded<KeyEvent>);
    } else if (stream === streams.apis) {
      this.#apis = evolveFleet(this.#apis, recorded as Recorded<FleetEvent>);
    } else {
      return;
    }
    this.#tell((l) => l.onChanged?.());
  }

  #foldWorker(id: WorkerId, recorded: Recorded<WorkerEvent>): void {
    const before = this.#workers.get(id) ?? initialWorker(id);
    const state = evolveWorker(before, recorded);
    if (state === before) return;
    this.#workers.set(id, state);
    this.#byModel = undefined;
    this.#tell((l) => l.onWorkerEvent?.(recorded, state));
  }

  #foldCatalog(id: WorkerId, recorded: Recorded<CatalogEvent>): void {
    const before = this.#catalogs.get(id) ?? initialCatalog(id);
    const state = evolveCatalog(before, recorded);
    if (state === before) return;
    this.#catalogs.set(id, state);
    this.#models = undefined;
    if (recorded.event.type === 'ModelFound') {
      const key = recorded.event.data.modelKey;
      if (!this.#foundAt.has(key)) this.#foundAt.set(key, Date.parse(recorded.metadata.at));
    }
  }

  #foldHistory(recorded: Recorded<HistoryEvent>): void {
    const pair = parseHistoryStream(recorded.stream);
    if (!pair) return;
    const ofWorker = this.#histories.get(pair.workerId) ?? new Map<ModelKey, PairHistory>();
    this.#histories.set(pair.workerId, ofWorker);
    const before = ofWorker.get(pair.modelKey) ?? initialHistory(pair.workerId, pair.modelKey);
    ofWorker.set(pair.modelKey, evolveHistory(before, recorded));
  }

  #mergeModels(): ReadonlyMap<ModelKey, ServableModel> {
    const merged = new Map<ModelKey, ServableModel>();
    for (const catalog of this.#catalogs.values()) {
      for (const [key, model] of catalog.models) {
        const other = merged.get(key);
        merged.set(key, {
          model: other?.model ?? model,
          workers: [...(other?.workers ?? []), catalog.workerId],
          foundAtMs: this.#foundAt.get(key) ?? 0,
        });
      }
    }
    return merged;
  }

  #indexResidents(): Map<ModelKey, PlacedResident[]> {
    const index = new Map<ModelKey, PlacedResident[]>();
    for (const state of this.#workers.values()) {
      for (const resident of state.residents.values()) {
        const placed = index.get(resident.modelKey) ?? [];
        placed.push({ workerId: state.workerId, resident });
        index.set(resident.modelKey, placed);
      }
    }
    return index;
  }

  #tell(say: (listener: FleetListener) => void): void {
    for (const listener of this.#listeners) say(listener);
  }
}

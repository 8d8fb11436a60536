import { evolveCatalog, initialCatalog, type CatalogState } from '#domain/catalog/catalog.js';
import type { CatalogEvent, FoundModel } from '#domain/events/catalog-events.js';
import type { Recorded } from '#domain/events/envelope.js';
import type { HistoryEvent } from '#domain/events/history-events.js';
import type { BerthEvent } from '#domain/events/index.js';
import type { SettingsEvent } from '#domain/events/other-events.js';
import type { WorkerEvent } from '#domain/events/worker-events.js';
import { evolveHistory, initialHistory, type PairHistory } from '#domain/history/history.js';
import { modelKey, type ModelKey, workerId, type WorkerId } from '#domain/ids.js';
import { evolveSettings, initialSettings, type SettingsState } from '#domain/settings/settings.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import type { WorkerState } from '#domain/worker/state.js';
import { patchOf } from '../knobs.js';
import type { LevelPatches } from '../setting-levels.js';
import { Recent } from './recent.js';

/** Decisions are appended at most a few events after what they were folded from. */
const KEPT_OF_WORKER = 256;
const KEPT = 32;

type Histories = ReadonlyMap<ModelKey, PairHistory>;

/** Revisions by the name of their stream, as a decision names what it was based on. */
export type BasedOn = ReadonlyMap<string, number>;

/** The log folded as the api folds it, each stream with its last states. All but calls; events in the log's order. */
export class FoldedLog {
  readonly #workers = new Map<WorkerId, Recent<WorkerState>>();
  readonly #catalogs = new Map<WorkerId, Recent<CatalogState>>();
  readonly #pairs = new Map<string, Recent<PairHistory>>();
  /** Never changed in place, so that what was captured stays. */
  readonly #histories = new Map<WorkerId, Histories>();
  readonly #settings = new Map<string, Recent<SettingsState>>();

  get workers(): readonly WorkerState[] {
    return [...this.#workers.values()].map((states) => states.latest);
  }

  fold(recorded: Recorded<BerthEvent>): void {
    const { stream } = recorded;
    const dash = stream.indexOf('-');
    const id = stream.slice(dash + 1);
    switch (stream.slice(0, dash)) {
      case 'worker': {
        const states = kept(
          this.#workers,
          workerId(id),
          () => new Recent(initialWorker(workerId(id)), KEPT_OF_WORKER),
        );
        states.push(evolveWorker(states.latest, recorded as Recorded<WorkerEvent>));
        return;
      }
      case 'catalog': {
        const states = kept(
          this.#catalogs,
          workerId(id),
          () => new Recent(initialCatalog(workerId(id)), KEPT),
        );
        states.push(evolveCatalog(states.latest, recorded as Recorded<CatalogEvent>));
        return;
      }
      case 'history': {
        const at = id.indexOf('~');
        if (at > 0)
          this.#foldHistory(
            workerId(id.slice(0, at)),
            modelKey(id.slice(at + 1)),
            recorded as Recorded<HistoryEvent>,
          );
        return;
      }
      case 'settings': {
        const states = kept(this.#settings, id, () => new Recent(initialSettings(id), KEPT));
        states.push(evolveSettings(states.latest, recorded as Recorded<SettingsEvent>));
        return;
      }
      default:
    }
  }

  /** Undefined when the state at that revision is too far back to be kept. */
  worker(id: WorkerId, basedOn: BasedOn): WorkerState | undefined {
    return stateAt(this.#workers.get(id), basedOn.get(`worker-${id}`));
  }

  modelOn(id: WorkerId, key: ModelKey, basedOn?: BasedOn): FoundModel | undefined {
    return stateAt(this.#catalogs.get(id), basedOn?.get(`catalog-${id}`))?.models.get(key);
  }

  modelsOn(id: WorkerId): ReadonlyMap<ModelKey, FoundModel> {
    return this.#catalogs.get(id)?.latest.models ?? new Map<ModelKey, FoundModel>();
  }

  history(id: WorkerId, key: ModelKey, basedOn?: BasedOn): PairHistory {
    const revision = basedOn?.get(`history-${id}~${key}`);
    if (revision === -1) return initialHistory(id, key);
    return stateAt(this.#pairs.get(`${id}~${key}`), revision) ?? initialHistory(id, key);
  }

  histories(id: WorkerId): Histories {
    return this.#histories.get(id) ?? new Map<ModelKey, PairHistory>();
  }

  /** What was set for the fleet, the worker and the pair. */
  levels(worker: WorkerId | undefined, model: ModelKey, basedOn?: BasedOn): LevelPatches {
    const of = (scope: string): SettingsState | undefined =>
      stateAt(this.#settings.get(scope), basedOn?.get(`settings-${scope}`));
    const fleet = of('fleet');
    const own = worker === undefined ? undefined : of(worker);
    const pair = worker === undefined ? undefined : of(`${worker}~${model}`);
    return {
      ...(fleet ? { fleet: patchOf(fleet, 'fleet') } : {}),
      ...(own ? { worker: patchOf(own, 'worker') } : {}),
      ...(pair ? { pair: patchOf(pair, 'pair') } : {}),
    };
  }

  #foldHistory(worker: WorkerId, key: ModelKey, recorded: Recorded<HistoryEvent>): void {
    const states = kept(this.#pairs, `${worker}~${key}`, () => new Recent(initialHistory(worker, key), KEPT));
    const state = evolveHistory(states.latest, recorded);
    states.push(state);
    this.#histories.set(worker, new Map(this.histories(worker)).set(key, state));
  }
}

/** The latest where no revision is asked for. */
const stateAt = <S extends { readonly revision: number }>(
  states: Recent<S> | undefined,
  revision: number | undefined,
): S | undefined => (revision === undefined ? states?.latest : states?.at(revision));

function kept<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

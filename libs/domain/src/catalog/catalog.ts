import type { StreamFold } from '../decider.js';
import type { CatalogEvent, FoundModel } from '../events/catalog-events.js';
import type { Recorded } from '../events/envelope.js';
import type { ModelKey, WorkerId } from '../ids.js';

export interface WeightsHash {
  readonly bytes: number;
  readonly sha256: string;
}

/** @param file relative to the model's path. */
export const hashKey = (key: ModelKey, file: string): string => `${key}\0${file}`;

export interface CatalogState {
  readonly workerId: WorkerId;
  readonly models: ReadonlyMap<ModelKey, FoundModel>;
  /** Of weight files, by `hashKey`; kept when a model goes, since it may come back. */
  readonly hashes: ReadonlyMap<string, WeightsHash>;
  readonly revision: number;
}

export const initialCatalog = (workerId: WorkerId): CatalogState => ({
  workerId,
  models: new Map(),
  hashes: new Map(),
  revision: -1,
});

/** Folds one event of `catalog-<workerId>`. */
export function evolveCatalog(state: CatalogState, recorded: Recorded<CatalogEvent>): CatalogState {
  if (recorded.revision <= state.revision) return state;
  const { event, revision } = recorded;
  switch (event.type) {
    case 'ModelFound':
    case 'ModelChanged':
      return { ...state, revision, models: new Map(state.models).set(event.data.modelKey, event.data) };
    case 'ModelGone': {
      const models = new Map(state.models);
      models.delete(event.data.modelKey);
      return { ...state, revision, models };
    }
    case 'WeightsHashed': {
      const { modelKey, file, bytes, sha256 } = event.data;
      const hashes = new Map(state.hashes).set(hashKey(modelKey, file), { bytes, sha256 });
      return { ...state, revision, hashes };
    }
  }
}

/**
 * Resolves the name in a call to a model. Strongest first: the key itself; the key or an alias in any case; the part
 * after the owner in any case.
 * @returns undefined when nothing answers to the name, or more than one model does at the strongest level that any does.
 */
export function resolveModel(models: Iterable<FoundModel>, name: string): FoundModel | undefined {
  const wanted = name.toLowerCase();
  const named: FoundModel[] = [];
  const short: FoundModel[] = [];
  for (const model of models) {
    if (model.modelKey === name) return model;
    const names = [model.modelKey as string, ...model.aliases].map((n) => n.toLowerCase());
    if (names.includes(wanted)) named.push(model);
    else if (names[0]?.split('/').at(-1) === wanted) short.push(model);
  }
  const level = named.length > 0 ? named : short;
  return level.length === 1 ? level[0] : undefined;
}

export const catalogFold = (workerId: WorkerId): StreamFold<CatalogState, CatalogEvent> => ({
  version: 1,
  initial: () => initialCatalog(workerId),
  evolve: evolveCatalog,
});

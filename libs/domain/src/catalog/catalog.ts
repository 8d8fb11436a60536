import { type CatalogEvent, type FoundModel } from '../events/catalog-events.js';
import { type Recorded } from '../events/envelope.js';
import { type ModelKey, type WorkerId } from '../ids.js';

export interface CatalogState {
  readonly workerId: WorkerId;
  readonly models: ReadonlyMap<ModelKey, FoundModel>;
  readonly revision: number;
}

export const initialCatalog = (workerId: WorkerId): CatalogState => ({
  workerId,
  models: new Map(),
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
    case 'WeightsHashed':
      return { ...state, revision };
  }
}

/**
 * Resolves the name in a call to a model: the key itself, an alias, or the part after the owner, in any case.
 * @returns undefined when nothing or more than one model answers to the name.
 */
export function resolveModel(models: Iterable<FoundModel>, name: string): FoundModel | undefined {
  const wanted = name.toLowerCase();
  let loose: FoundModel[] = [];
  for (const model of models) {
    if (model.modelKey === name) return model;
    const names = [model.modelKey as string, ...model.aliases].map((n) => n.toLowerCase());
    const short = (model.modelKey as string).split('/').at(-1)?.toLowerCase();
    if (names.includes(wanted) || short === wanted) loose = [...loose, model];
  }
  return loose.length === 1 ? loose[0] : undefined;
}

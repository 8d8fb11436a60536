import { resolveModel } from '#domain/catalog/catalog.js';
import type { FoundModel } from '#domain/events/catalog-events.js';
import { type BerthError, berthError } from '#domain/errors.js';
import type { ModelKey, WorkerId } from '#domain/ids.js';
import type { Ask } from '#domain/placement-terms.js';
import { type Result, err, ok } from '#domain/result.js';
import { type CallOptions, parseModelName } from '#placement/model-name.js';
import type { LevelPatches } from '#placement/setting-levels.js';
import type { EffectiveSettings } from '#placement/settings.js';
import type { Caller } from '../access/access.js';
import { termsOf } from '../admission/terms.js';
import type { ServableModel } from '../fleet/fleet.js';
import type { FoldedSettings } from '../fleet/settings.js';
import type { CallBody } from './call-body.js';
import { withBodyOptions } from './call-options.js';
import { type Endpoint, endpointsOf } from './endpoints.js';
import { onlyOpen } from './models.js';
import { nearest } from './nearest.js';

export interface Resolved {
  readonly model: FoundModel;
  readonly ask: Ask;
  readonly settings: EffectiveSettings;
  readonly options: CallOptions;
  /** The only worker that will do, where the call names one. */
  readonly worker?: WorkerId;
}

const MOST_REMEMBERED = 256;

/** From the name in a call to a model and an ask. What calls without options resolve to is remembered. */
export class Resolver {
  readonly #models: () => ReadonlyMap<ModelKey, ServableModel>;
  readonly #settings: Pick<FoldedSettings, 'version' | 'levels'>;
  readonly #nameOf: (worker: WorkerId) => string | undefined;
  #from: ReadonlyMap<ModelKey, ServableModel> | undefined;
  #under = 0;
  readonly #known = new Map<string, Resolved>();

  constructor(
    models: () => ReadonlyMap<ModelKey, ServableModel>,
    settings: Pick<FoldedSettings, 'version' | 'levels'>,
    nameOf: (worker: WorkerId) => string | undefined,
  ) {
    this.#nameOf = nameOf;
    this.#models = models;
    this.#settings = settings;
  }

  resolve(
    body: Pick<CallBody, 'modelName' | 'berth'>,
    endpoint: Endpoint,
    caller: Pick<Caller, 'rights' | 'models'>,
  ): Result<Resolved> {
    const resolved = this.#resolve(body, endpoint, caller);
    if (!caller.models || !resolved.ok || caller.models.includes(resolved.value.model.modelKey))
      return resolved;
    const message = `This key opens ${caller.models.join(', ')} and not "${resolved.value.model.modelKey}".`;
    return err(berthError('forbidden', message, { param: 'model' }));
  }

  #resolve(
    body: Pick<CallBody, 'modelName' | 'berth'>,
    endpoint: Endpoint,
    caller: Pick<Caller, 'rights' | 'models'>,
  ): Result<Resolved> {
    const models = this.#models();
    if (models !== this.#from || this.#settings.version !== this.#under) {
      this.#from = models;
      this.#under = this.#settings.version;
      this.#known.clear();
    }
    const cached = body.berth === undefined ? this.#known.get(body.modelName) : undefined;
    if (cached) return suits(cached, endpoint);
    const name = parseModelName(body.modelName);
    if (!name.ok) return name;
    const options = withBodyOptions(name.value.options, body.berth, caller.rights);
    if (!options.ok) return options;
    const model = resolveTagged(
      [...models.values()].map((servable) => servable.model),
      name.value.name,
    );
    if (!model) return err(unknownModel(name.value.name, onlyOpen(models, caller)));
    // Settings of the first worker that has it stand for what is one for the call: how long it waits, the queue it is in.
    const have = models.get(model.modelKey)?.workers ?? [];
    const pinned = this.#pinnedTo(options.value.worker, have, model.modelKey);
    if (!pinned.ok) return pinned;
    const worker = pinned.value ?? have[0];
    const asked = withAsk(model, options.value, this.#settings.levels(worker, model.modelKey));
    if (!asked.ok) return asked;
    const resolved = pinned.value === undefined ? asked.value : { ...asked.value, worker: pinned.value };
    if (body.berth === undefined) {
      if (this.#known.size >= MOST_REMEMBERED) this.#known.clear();
      this.#known.set(body.modelName, resolved);
    }
    return suits(resolved, endpoint);
  }

  #pinnedTo(
    worker: string | undefined,
    have: readonly WorkerId[],
    key: ModelKey,
  ): Result<WorkerId | undefined> {
    if (worker === undefined) return ok(undefined);
    const found = named(worker, have, this.#nameOf);
    if (found !== undefined) return ok(found);
    const names = have.map((id) => this.#nameOf(id) ?? id).join(', ');
    const message = `No worker "${worker.slice(0, 100)}" has "${key}". It is on: ${names}.`;
    return err(berthError('invalid_request', message, { param: 'berth.worker' }));
  }
}

/** By id or name, among those that have the model. */
function named(
  worker: string,
  have: readonly WorkerId[],
  nameOf: (worker: WorkerId) => string | undefined,
): WorkerId | undefined {
  return have.find((id) => id === worker) ?? have.find((id) => nameOf(id) === worker);
}

/** Ollama's clients write `:latest` behind every name without a tag. */
export const resolveTagged = (models: readonly FoundModel[], name: string): FoundModel | undefined =>
  resolveModel(models, name) ??
  (name.endsWith(':latest') ? resolveModel(models, name.slice(0, -':latest'.length)) : undefined);

function withAsk(model: FoundModel, options: CallOptions, levels: LevelPatches): Result<Resolved> {
  const { artifact } = options;
  const has = (label: string): boolean =>
    model.artifacts.some((a) => a.label.toLowerCase() === label.toLowerCase());
  if (artifact !== undefined && !has(artifact)) {
    const labels = model.artifacts.map((a) => a.label).join(', ');
    const message = `"${model.modelKey}" has no artifact "${artifact}". It has: ${labels}.`;
    return err(berthError('invalid_request', message, { param: 'model' }));
  }
  return ok({ model, options, ...termsOf(model, options, levels) });
}

function suits(resolved: Resolved, endpoint: Endpoint): Result<Resolved> {
  const { kind, modelKey } = resolved.model;
  if (kind === endpoint.kind) return ok(resolved);
  const answering = endpointsOf(kind);
  const instead =
    answering.length > 0
      ? `Call ${answering.join(' or ')} with it.`
      : 'No endpoint of this Berth serves that.';
  const message = `"${modelKey}" is a model for ${kind}, which ${endpoint.path} is not. ${instead}`;
  return err(berthError('invalid_request', message, { param: 'model' }));
}

export function unknownModel(name: string, models: ReadonlyMap<ModelKey, ServableModel>): BerthError {
  const names = [...models.values()].flatMap(({ model }) => [model.modelKey as string, ...model.aliases]);
  const near = nearest(name, names);
  const hint =
    near.length > 0
      ? `Nearest: ${near.map((n) => `"${n}"`).join(', ')}.`
      : names.length > 0
        ? 'GET /v1/models lists the models there are.'
        : 'No models were found yet; see `berth models`.';
  return berthError('model_not_found', `There is no model "${name.slice(0, 200)}". ${hint}`, {
    param: 'model',
    details: { nearest: near },
  });
}

import type { FoundModel } from '#domain/events/catalog-events.js';
import type { ModelKey, WorkerId } from '#domain/ids.js';
import type { Ask } from '#domain/placement-terms.js';
import { askOf } from '#placement/ask.js';
import type { ResidentPolicy } from '#placement/contract.js';
import type { CallOptions } from '#placement/model-name.js';
import {
  defaultSettings,
  effectiveSettings,
  type LevelPatches,
  withoutPins,
} from '#placement/setting-levels.js';
import type { EffectiveSettings } from '#placement/settings.js';
import type { FoldedSettings } from '../fleet/settings.js';

/** What a call comes to: the settings of every level laid over one another, and what it asks of a resident. */
export interface Terms {
  readonly settings: EffectiveSettings;
  readonly ask: Ask;
}

/** The terms of a call of a model under its options. `@fit` takes the pair's pins away. */
export function termsOf(model: FoundModel, options: CallOptions, levels: LevelPatches): Terms {
  const above = options.fit && levels.pair ? { ...levels, pair: withoutPins(levels.pair) } : levels;
  const { settings } = effectiveSettings({ ...above, call: options.settings });
  const wanted = options.artifact?.toLowerCase();
  const artifact =
    wanted === undefined
      ? model.artifacts[0]
      : model.artifacts.find(({ label }) => label.toLowerCase() === wanted);
  return { settings, ask: askOf(settings, options, artifact?.geometry?.trainedContextTokens) };
}

const NO_MODEL = '' as ModelKey;

interface Kept {
  readonly version: number;
  readonly model: FoundModel;
  readonly terms: Terms;
}

/** Terms by worker, kept per set of options as long as the settings stay. */
export class TermsByWorker {
  readonly #settings: FoldedSettings;
  readonly #kept = new WeakMap<CallOptions, Map<WorkerId, Kept>>();
  readonly #ofPairs = new Map<string, { readonly version: number; readonly settings: EffectiveSettings }>();

  constructor(settings: FoldedSettings) {
    this.#settings = settings;
  }

  of(wanted: { readonly model: FoundModel; readonly options: CallOptions }, worker: WorkerId): Terms {
    const { model, options } = wanted;
    const { version } = this.#settings;
    const workers = this.#kept.get(options) ?? new Map<WorkerId, Kept>();
    const known = workers.get(worker);
    if (known?.version === version && known.model === model) return known.terms;
    const terms = termsOf(model, options, this.#settings.levels(worker, model.modelKey));
    this.#kept.set(options, workers.set(worker, { version, model, terms }));
    return terms;
  }

  /** Of the fleet alone: what is one for all workers, as the order of the queue. */
  get fleet(): EffectiveSettings {
    const patch = this.#settings.levels(undefined, NO_MODEL);
    return patch.fleet ? effectiveSettings(patch).settings : defaultSettings;
  }

  /** Of a worker, and of a model on it where one is named: what holds with no call. */
  settingsOf(worker: WorkerId, model = NO_MODEL): EffectiveSettings {
    const { version } = this.#settings;
    const pair = `${worker}~${model}`;
    const known = this.#ofPairs.get(pair);
    if (known?.version === version) return known.settings;
    const { settings } =
      version === 0 ? { settings: defaultSettings } : effectiveSettings(this.#settings.levels(worker, model));
    this.#ofPairs.set(pair, { version, settings });
    return settings;
  }

  /** Who may evict the residents of these models on a worker, and when. */
  policies(worker: WorkerId, models: Iterable<ModelKey>): ReadonlyMap<ModelKey, ResidentPolicy> {
    const policies = new Map<ModelKey, ResidentPolicy>();
    if (this.#settings.version === 0) return policies;
    for (const model of models) policies.set(model, this.settingsOf(worker, model));
    return policies;
  }
}

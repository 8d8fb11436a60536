import { createHash } from 'node:crypto';
import type { Ability } from '#domain/events/catalog-events.js';
import { type ModelKind, sumOf } from '#domain/placement-terms.js';
import type { ServableModel } from '../../../fleet/fleet.js';
import type { OpenModels } from '../../models.js';
import type { Json } from '../json.js';

/** Whose API this is: clients compare the digits with what they need of it. */
export const OLLAMA_VERSION = '0.12.6';

/** As the listings of Ollama show parameters: `8.0B`, `494.03M`. */
export function parameterSize(parameters: number): string {
  if (parameters >= 1e9) return `${(parameters / 1e9).toFixed(1)}B`;
  if (parameters >= 1e6) return `${(parameters / 1e6).toFixed(2)}M`;
  return `${(parameters / 1e3).toFixed(2)}K`;
}

const details = ({ model }: ServableModel): Json => {
  const [artifact] = model.artifacts;
  const family = artifact?.geometry?.architecture ?? 'unknown';
  return {
    parent_model: '',
    format: model.framework,
    family,
    families: [family],
    parameter_size: parameterSize(artifact?.geometry?.parameters ?? 0),
    quantization_level: artifact?.label ?? '',
  };
};

const sizeOf = ({ model }: ServableModel): number =>
  (model.artifacts[0]?.files ?? []).reduce((sum, { bytes }) => sum + bytes, 0);

/** Stands for the files of the best artifact: it changes when they do. No hash of their bytes. */
const digestOf = ({ model }: ServableModel): string =>
  createHash('sha256')
    .update(JSON.stringify([model.modelKey, model.artifacts[0]?.label, model.artifacts[0]?.files]))
    .digest('hex');

const entry = (servable: ServableModel): Json => ({
  name: servable.model.modelKey,
  model: servable.model.modelKey,
  size: sizeOf(servable),
  digest: digestOf(servable),
  details: details(servable),
});

/** `/api/tags`: every model that could be served. */
export const tags = (fleet: OpenModels): Json => ({
  models: [...fleet.models.values()]
    .sort((a, b) => (a.model.modelKey < b.model.modelKey ? -1 : 1))
    .map((servable) => ({ ...entry(servable), modified_at: new Date(servable.foundAtMs).toISOString() })),
});

/** When nothing is said of when a model goes, it goes when its room is wanted. */
const NO_END = '2318-01-01T00:00:00Z';

/** `/api/ps`: what is loaded now. */
export const ps = (fleet: OpenModels): Json => ({
  models: [...fleet.models.values()].flatMap((servable) =>
    fleet
      .residentsOf(servable.model.modelKey)
      .filter(({ resident }) => resident.phase === 'ready' && !resident.leaving)
      .map(({ resident }) => {
        const byDevice = resident.measured?.byDevice ?? [];
        const bytes = (of: typeof byDevice) => of.reduce((sum, d) => sum + sumOf(d), 0);
        return {
          ...entry(servable),
          size: bytes(byDevice),
          size_vram: bytes(byDevice.filter(({ deviceId }) => deviceId !== 'ram')),
          expires_at: NO_END,
          context_length: resident.contract.contextTokens,
        };
      }),
  ),
});

const KIND_ABILITIES: Readonly<Partial<Record<ModelKind, readonly string[]>>> = {
  chat: ['completion'],
  embedding: ['embedding'],
};

/** Ollama's names of them; it knows no others. */
const ABILITY_NAMES: Readonly<Partial<Record<Ability, string>>> = {
  tools: 'tools',
  vision: 'vision',
  reasoning: 'thinking',
};

/** `/api/show`: what a client asks before it offers a model. */
export function show(servable: ServableModel, abilities: readonly Ability[]): Json {
  const { model, foundAtMs } = servable;
  const geometry = model.artifacts[0]?.geometry;
  const architecture = geometry?.architecture ?? 'unknown';
  return {
    license: '',
    modelfile: `FROM ${model.modelKey}`,
    parameters: '',
    template: '',
    details: details(servable),
    model_info: {
      'general.architecture': architecture,
      'general.basename': model.modelKey,
      'general.parameter_count': geometry?.parameters ?? 0,
      [`${architecture}.context_length`]: geometry?.trainedContextTokens ?? 0,
      [`${architecture}.embedding_length`]: geometry?.embeddingLength ?? 0,
      [`${architecture}.block_count`]: geometry?.blocks.length ?? 0,
    },
    capabilities: [
      ...(KIND_ABILITIES[model.kind] ?? []),
      ...abilities.flatMap((ability) => ABILITY_NAMES[ability] ?? []),
    ],
    modified_at: new Date(foundAtMs).toISOString(),
  };
}

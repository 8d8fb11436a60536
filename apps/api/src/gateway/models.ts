import type { Ability } from '#domain/events/catalog-events.js';
import type { ModelKey } from '#domain/ids.js';
import type { Resident } from '#domain/worker/state.js';
import type { ShortVerdict } from '#placement/verdicts.js';
import type { Caller } from '../access/access.js';
import type { Fleet, ServableModel } from '../fleet/fleet.js';

/** The models that somebody may see, and what is known of them. */
export type OpenModels = Pick<Fleet, 'models' | 'residentsOf' | 'worker'>;

/** A key that opens some models shows those: what else there is, it does not say. */
export function openTo(fleet: OpenModels, caller: Pick<Caller, 'models'>): OpenModels {
  if (!caller.models) return fleet;
  return {
    models: onlyOpen(fleet.models, caller),
    residentsOf: (key) => fleet.residentsOf(key),
    worker: (id) => fleet.worker(id),
  };
}

export function onlyOpen(
  models: ReadonlyMap<ModelKey, ServableModel>,
  { models: open }: Pick<Caller, 'models'>,
): ReadonlyMap<ModelKey, ServableModel> {
  return open ? new Map([...models].filter(([key]) => open.includes(key))) : models;
}

/** Whether a model that is not loaded could be, as far as it is known now. */
export type VerdictOf = (
  servable: ServableModel,
) => Omit<ShortVerdict, 'reason'> & { readonly reason?: string };

/** Every model that could be served, asleep ones too, without loading any. */
export function modelList(fleet: OpenModels, verdictOf: VerdictOf): unknown {
  const data = [...fleet.models.values()]
    .sort((a, b) => (a.model.modelKey < b.model.modelKey ? -1 : 1))
    .map((servable) => modelEntry(fleet, servable, verdictOf));
  return {
    object: 'list',
    data,
    // Anthropic's list has these beside its data; OpenAI's clients do not look at them.
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: false,
  };
}

export function modelEntry(fleet: OpenModels, servable: ServableModel, verdictOf: VerdictOf) {
  const { model, foundAtMs, workers } = servable;
  const residents = fleet.residentsOf(model.modelKey).map(({ resident }) => resident);
  const ready = residents.filter((resident) => resident.phase === 'ready' && !resident.leaving);
  const trained = Math.max(0, ...model.artifacts.map((a) => a.geometry?.trainedContextTokens ?? 0));
  const loaded = ready[0]?.contract.contextTokens;
  return {
    id: model.modelKey,
    object: 'model',
    created: Math.floor(foundAtMs / 1000),
    owned_by: ownerOf(model.modelKey),
    type: 'model',
    display_name: model.modelKey,
    created_at: new Date(foundAtMs).toISOString(),
    berth: {
      loaded: ready.length > 0,
      loading: residents.some((resident) => resident.phase !== 'ready'),
      kind: model.kind,
      context: {
        ...(loaded === undefined ? {} : { loaded }),
        ...(trained === 0 ? {} : { trained }),
      },
      artifacts: model.artifacts.map((artifact) => ({
        label: artifact.label,
        bytes: artifact.files.reduce((sum, file) => sum + file.bytes, 0),
        complete: artifact.complete,
        ...(artifact.broken === undefined ? {} : { broken: artifact.broken }),
      })),
      verdict: ready[0] ? verdictOfLoaded(ready[0]) : verdictOf(servable),
      abilities: abilitiesOf(fleet, servable),
      aliases: model.aliases,
      workers: workers.map((id) => fleet.worker(id)?.name ?? id),
      ...(model.smoke === true ? { smoke: true } : {}),
    },
  };
}

const verdictOfLoaded = ({ artifact, contract }: Resident) => ({
  fits: 'loaded' as const,
  artifact,
  rung: contract.rung,
  reason: 'it is loaded',
});

/** What an engine must be able to do for an ability of a model to be had; others are the model's alone. */
const NEEDED: Readonly<Partial<Record<Ability, string>>> = {
  vision: 'vision',
  audio: 'audio',
  transcribe: 'audio',
  tools: 'tools',
};

/** What its files show and some worker that has it can serve. */
export function abilitiesOf(fleet: OpenModels, { model, workers }: ServableModel): readonly Ability[] {
  const engines = workers.flatMap((id) => fleet.worker(id)?.engines ?? []);
  return (model.abilities ?? []).filter((ability) => {
    const needed = NEEDED[ability];
    return needed === undefined || engines.some((engine) => engine.capabilities.includes(needed));
  });
}

const ownerOf = (key: ModelKey): string => (key.includes('/') ? (key.split('/')[0] ?? 'local') : 'local');

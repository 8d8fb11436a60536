import { formatBytes } from '#domain/units.js';
import type { ModelRow } from '../client/rows.js';
import { columnsOf, shorten, table } from '../table.js';

/** Every model that could be called, with what is known of it; as wide as the terminal, at most 100 columns. */
export function modelsText(models: readonly ModelRow[], columns = columnsOf()): string {
  const present = merged(models);
  if (present.length === 0) {
    return 'No model was found. Fetch one with `berth pull OWNER/REPO`, or put a GGUF file into the folder of models.';
  }
  const rows = present.map((model) => {
    const loaded = model.residents.find(({ phase }) => phase === 'ready');
    const best = model.artifacts.find((artifact) => artifact.broken === undefined) ?? model.artifacts[0];
    const context = loaded?.contextTokens ?? model.trainedContextTokens ?? best?.trainedContextTokens;
    return [
      shorten(model.modelKey, 40),
      model.smoke ? `${model.kind}, smoke` : model.kind,
      shorten(labelsOf(model), 16),
      formatBytes(best?.bytes ?? 0),
      loaded !== undefined ? 'yes' : model.residents.length > 0 ? 'loading' : 'no',
      context === undefined ? '' : String(context),
    ];
  });
  const can = present.map((model) => abilitiesOf(model, columns)).filter((line) => line !== '');
  const notes = present.flatMap(notesOf);
  return [
    table(['model', 'kind', 'artifacts', 'size', 'loaded', 'context'], rows, [3, 5], [2, 0], columns),
    ...(can.length === 0 ? [] : ['', ...can]),
    ...(notes.length === 0 ? [] : ['', ...notes]),
  ].join('\n');
}

/** What a model can do beyond its kind, and what lies beside it that it is loaded with. */
function abilitiesOf({ modelKey, abilities = [], attachments = [] }: ModelRow, columns: number): string {
  const beside = attachments.map(
    ({ role, label, bytes, broken }) =>
      `${role} ${shorten(label, 30)} (${broken === undefined ? formatBytes(bytes) : 'broken'})`,
  );
  const known = [...(abilities.length === 0 ? [] : [abilities.join(', ')]), ...beside];
  return known.length === 0 ? '' : shorten(`${shorten(modelKey, 40)}: ${known.join('; ')}`, columns);
}

/** Why an artifact cannot be called, and what a marker said wrongly. */
function notesOf({ modelKey, artifacts, attachments = [], marker }: ModelRow): readonly string[] {
  return [
    ...attachments.flatMap(({ role, label, broken }) =>
      broken === undefined ? [] : [`${modelKey}: its ${role} ${label} is broken: ${broken}`],
    ),
    ...artifacts.flatMap(({ label, broken, complete, missing, format }) => {
      if (format === 'pickle') return [`${modelKey} is not offered as ${label}: ${broken ?? 'never loaded'}`];
      if (broken !== undefined) return [`${modelKey} ${label} is broken: ${broken}`];
      if (complete !== false) return [];
      const lacks = missing === undefined ? 'some of its files' : missing.join(', ');
      return [`${modelKey} ${label} is incomplete: it lacks ${lacks}`];
    }),
    ...(marker?.corrections ?? []).map(
      ({ fact, said, found, reason }) =>
        `${modelKey}: its marker says ${fact} ${said}, and ${found} holds: ${reason}`,
    ),
  ];
}

const labelsOf = (model: ModelRow): string =>
  model.artifacts
    .map(({ label, broken, complete, format }) => {
      if (format === 'pickle') return `${label} (never)`;
      return broken !== undefined
        ? `${label} (broken)`
        : complete === false
          ? `${label} (incomplete)`
          : label;
    })
    .join(', ');

/** One line for a model, on however many workers it lies. */
function merged(models: readonly ModelRow[]): readonly ModelRow[] {
  const byKey = new Map<string, ModelRow>();
  for (const model of models) {
    const known = byKey.get(model.modelKey);
    const labels = new Set(known?.artifacts.map(({ label }) => label));
    byKey.set(
      model.modelKey,
      known === undefined
        ? model
        : {
            ...known,
            artifacts: [...known.artifacts, ...model.artifacts.filter(({ label }) => !labels.has(label))],
            residents: [...known.residents, ...model.residents],
          },
    );
  }
  return [...byKey.values()].sort((a, b) => (a.modelKey < b.modelKey ? -1 : 1));
}

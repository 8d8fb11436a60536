import type { ModelKind } from '#domain/placement-terms.js';
import { geometryOfConfig } from './config-geometry.js';
import type { Described } from './describing.js';
import { baseName, isPickled } from './file-names.js';
import type { MadeArtifact } from './gguf-artifacts.js';
import { labelOfConfig } from './quantization.js';
import {
  asModelFile,
  brokenOf,
  type FolderFile,
  MOST_MISSING,
  type ReadFile,
  shardSets,
} from './weight-file.js';

const ADAPTER = /(?:^|\/)adapter_model\.safetensors$/;
/** A second copy of the weights, as some publishers put beside the one for transformers. */
const COPY = /^(?:consolidated|original\/)/;
const VARIANT = /\.(fp16|bf16|fp32|fp8[a-z0-9_]*|int8|ema|non_ema)(?=[-.])/;

export const isAdapterWeights = (name: string): boolean => ADAPTER.test(name);

/** Artifacts of a safetensors folder: one for each precision that it holds whole. */
export function safetensorsArtifacts(
  files: readonly ReadFile[],
  described: Described,
  kind: ModelKind | undefined,
  unserved: string | undefined,
): readonly MadeArtifact[] {
  const pipeline = described.has('model_index.json');
  const own = files.filter(({ file: { name } }) => {
    if (isAdapterWeights(name)) return false;
    // A pipeline's parts lie in folders of their own; what lies beside them is the same in one file.
    return pipeline ? name.includes('/') : !name.includes('/');
  });
  const weights = own.some(({ file }) => !COPY.test(file.name))
    ? own.filter(({ file }) => !COPY.test(file.name))
    : own;
  const byVariant = new Map<string, ReadFile[]>();
  for (const one of weights) {
    const variant = VARIANT.exec(baseName(one.file.name))?.[1] ?? '';
    byVariant.set(variant, [...(byVariant.get(variant) ?? []), one]);
  }
  const config = described.json('config.json');
  const labels = new Set<string>();
  return [...byVariant].map(([variant, shards]) => {
    const main = shards.reduce((a, b) => (b.file.bytes > a.file.bytes ? b : a));
    const plain = labelOfConfig(config, main.facts.mainType);
    const label = labels.has(plain) ? `${plain}-${variant === '' ? 'default' : variant}` : plain;
    labels.add(label);
    const missing = missingOf(shards, variant, described, kind, pipeline);
    const broken = brokenOf(shards) ?? unserved;
    const complete = missing.length === 0;
    const geometry =
      complete && broken === undefined && config !== undefined && isLanguage(kind)
        ? geometryOfConfig(
            config,
            kind,
            shards.map((s) => s.facts),
            described.template !== undefined,
          )
        : undefined;
    return {
      artifact: {
        label,
        format: 'safetensors' as const,
        files: shards.map(asModelFile),
        complete,
        ...(complete ? {} : { missing: missing.slice(0, MOST_MISSING) }),
        ...(broken === undefined ? {} : { broken }),
        ...(geometry === undefined ? {} : { geometry }),
      },
      paths: shards.map((s) => s.file.absolute),
      first: main,
    };
  });
}

const isLanguage = (kind: ModelKind | undefined): kind is 'chat' | 'embedding' | 'rerank' =>
  kind === 'chat' || kind === 'embedding' || kind === 'rerank';

/** By the index when there is one, else by the numbers in the names; a config and a tokenizer belong to it too. */
function missingOf(
  shards: readonly ReadFile[],
  variant: string,
  described: Described,
  kind: ModelKind | undefined,
  pipeline: boolean,
): readonly string[] {
  const there = new Set(shards.map((s) => s.file.name));
  const named = described.indexes
    .filter(({ name }) => (VARIANT.exec(baseName(name))?.[1] ?? '') === variant)
    .filter(({ files }) => [...files].some((file) => there.has(file)))
    .flatMap(({ files }) => [...files].filter((file) => !there.has(file)));
  const numbered = shardSets(shards).flatMap((set) => set.missing);
  const beside: string[] = [];
  if (!pipeline && !described.has('config.json')) beside.push('config.json');
  if (!pipeline && isLanguage(kind) && !described.hasTokenizer) beside.push('tokenizer.json');
  return [...new Set([...named, ...numbered, ...beside])];
}

/** Pickled weights of a folder as one artifact that is never offered. */
export function pickledArtifact(files: readonly FolderFile[]): MadeArtifact | undefined {
  const pickled = files.filter(({ name }) => isPickled(name));
  if (pickled.length === 0) return undefined;
  return {
    artifact: {
      label: 'pickle',
      format: 'pickle',
      files: pickled.map(({ name, bytes }) => ({ name, bytes })),
      complete: true,
      broken:
        'its weights are pickled: whoever opens them runs what they contain, so they are never loaded; ' +
        'fetch or convert them as safetensors or GGUF',
    },
    paths: pickled.map((file) => file.absolute),
    first: undefined,
  };
}

import type { Artifact } from '#domain/events/catalog-events.js';
import { baseName } from './file-names.js';
import type { FileFacts } from './file-facts.js';
import { geometryOf } from './geometry-of.js';
import { HeaderKeys } from './header-keys.js';
import { isPictureArchitecture, isSpeechArchitecture } from './header-evidence.js';
import { labelOfFileType, readName } from './quant.js';
import { asModelFile, brokenOf, type ReadFile, type ShardSet, shardSets } from './weight-file.js';

/** An artifact with what the event does not carry. */
export interface MadeArtifact {
  readonly artifact: Artifact;
  /** Absolute, the first shard first. */
  readonly paths: readonly string[];
  readonly first: ReadFile | undefined;
}

/** `projector` and `adapter` go with a model; `other` is none and goes with none (importance matrices, vocabularies). */
export function roleOf({ file, facts }: ReadFile): 'model' | 'projector' | 'adapter' | 'other' {
  if (file.role === 'projector' || file.role === 'adapter') return file.role;
  const type = facts.values['general.type'];
  if (type === 'adapter') return 'adapter';
  if (type === 'mmproj' || facts.values['general.architecture'] === 'clip') return 'projector';
  if (type === 'imatrix' || type === 'vocab' || /(?:^|[/.-])imatrix/i.test(file.name)) return 'other';
  return /(?:^|[/.-])mmproj/i.test(file.name) ? 'projector' : 'model';
}

/** Artifacts of the GGUF files of one folder: shards folded into one, labels unique. */
export function ggufArtifacts(files: readonly ReadFile[]): readonly MadeArtifact[] {
  const sets = shardSets(files);
  const labels = sets.map(({ shards }) => labelOf(shards[0]));
  return sets.map((set, i) => {
    const label = labels[i] ?? '';
    // Two files of one quant in a folder are two artifacts: then the file's own name tells them apart.
    const clash = labels.filter((other) => other === label).length > 1;
    return artifactOf(clash ? (set.shards[0]?.file.name.replace(/\.gguf$/i, '') ?? label) : label, set);
  });
}

function artifactOf(label: string, { shards, missing }: ShardSet): MadeArtifact {
  const complete = missing.length === 0;
  const spoilt = brokenOf(shards);
  const { architecture } = new HeaderKeys(shards[0]?.facts.values ?? {});
  // What has no blocks of a language model is no worse for it; nothing is priced from it.
  const priced = !isPictureArchitecture(architecture) && !isSpeechArchitecture(architecture);
  const geometry =
    complete && spoilt === undefined && priced ? geometryOnce(shards.map((s) => s.facts)) : undefined;
  const broken = spoilt ?? (geometry !== undefined && 'broken' in geometry ? geometry.broken : undefined);
  return {
    artifact: {
      label,
      files: shards.map(asModelFile),
      complete,
      ...(complete ? {} : { missing }),
      ...(broken === undefined ? {} : { broken }),
      ...(geometry === undefined || 'broken' in geometry ? {} : { geometry }),
    },
    paths: shards.map((s) => s.file.absolute),
    first: shards[0],
  };
}

/** The facts of a file that did not change are the same object at every scan. */
const known = new WeakMap<FileFacts, ReturnType<typeof geometryOf>>();
function geometryOnce(shards: readonly FileFacts[]): ReturnType<typeof geometryOf> {
  const [first] = shards;
  if (first === undefined || shards.length > 1) return geometryOf(shards);
  const geometry = known.get(first) ?? geometryOf(shards);
  known.set(first, geometry);
  return geometry;
}

function labelOf(first: ReadFile | undefined): string {
  if (first === undefined) return 'unknown';
  const named =
    readName(baseName(first.file.name)).label ?? first.file.name.split('/').map(readName).at(-2)?.label;
  if (named !== undefined) return named;
  const fileType = first.facts.values['general.file_type'];
  return (
    (typeof fileType === 'number' ? labelOfFileType(fileType) : undefined) ??
    (first.facts.mainType === 'none' ? 'unknown' : first.facts.mainType)
  );
}

import type { Artifact, FoundModel } from '#domain/events/catalog-events.js';
import { modelKey } from '#domain/ids.js';
import type { ModelKind } from '#domain/placement-terms.js';
import type { FileFacts } from './file-facts.js';
import { geometryOf } from './geometry-of.js';
import { labelOfFileType, qualityRank, readName } from './quant.js';
import type { ModelFolder } from './stores.js';

export interface ScannedModel {
  readonly model: FoundModel;
  /** Absolute paths of each artifact's files, the first shard first. Never in an event. */
  readonly files: ReadonlyMap<string, readonly string[]>;
  /** A file of it was written a moment ago and is not whole yet: what is said here will change. */
  readonly settling: boolean;
}

/** A broken file that was changed within this is taken to be in the making: copied, or still being written. */
const SETTLING_MS = 1000;

type FolderFile = ModelFolder['files'][number];
interface ReadFile {
  readonly file: FolderFile;
  readonly facts: FileFacts;
}

/** Files that are no model of their own: projectors, adapters, importance matrices. */
function isModel({ file, facts }: ReadFile): boolean {
  const type = facts.values['general.type'];
  const architecture = facts.values['general.architecture'];
  if (type === 'adapter' || type === 'mmproj' || type === 'imatrix' || type === 'vocab') return false;
  return architecture !== 'clip' && !/(?:^|[/.-])(?:mmproj|imatrix)/i.test(file.name);
}

/**
 * One model from the files of its folder: shards folded into one artifact, artifacts best first.
 * @returns undefined when the folder holds no model.
 */
export function assemble(
  folder: ModelFolder,
  read: readonly ReadFile[],
  nowMs: number,
): ScannedModel | undefined {
  const sets = new Map<string, ReadFile[]>();
  for (const one of read.filter(isModel)) {
    const { shard } = readName(baseName(one.file.name));
    const set = shard === undefined ? one.file.name : one.file.name.replace(/-\d{5}-of-/i, '-of-');
    sets.set(set, [...(sets.get(set) ?? []), one]);
  }
  if (sets.size === 0) return undefined;

  const labels = [...sets.values()].map((set) => labelOf(set[0]));
  const artifacts: { artifact: Artifact; paths: readonly string[] }[] = [];
  for (const [i, set] of [...sets.values()].entries()) {
    const label = labels[i] ?? '';
    // Two files of one quant in a folder are two artifacts: then the file's own name tells them apart.
    const clash = labels.filter((other) => other === label).length > 1;
    const unique = clash ? (set[0]?.file.name.replace(/\.gguf$/i, '') ?? label) : label;
    artifacts.push(artifactOf(unique, label, set));
  }
  const order = new Map(artifacts.map((a) => [a, rankOf(a.artifact)]));
  artifacts.sort((a, b) => compare(order.get(a) ?? [], order.get(b) ?? []));

  const smoke = read.some(({ facts }) => facts.values['berth.preset'] === 'smoke');
  return {
    model: {
      modelKey: modelKey(folder.key),
      aliases: folder.aliases,
      root: folder.root,
      path: folder.path,
      kind: kindOf(artifacts.map((a) => a.artifact)),
      framework: 'gguf',
      artifacts: artifacts.map((a) => a.artifact),
      ...(smoke ? { smoke } : {}),
    },
    files: new Map(artifacts.map((a) => [a.artifact.label, a.paths])),
    settling: read.some(
      ({ file, facts }) => facts.broken !== undefined && Math.abs(nowMs - file.modifiedMs) < SETTLING_MS,
    ),
  };
}

function artifactOf(label: string, quant: string, set: readonly ReadFile[]) {
  const shards = set
    .map((one) => ({ ...one, shard: readName(baseName(one.file.name)).shard }))
    .sort((a, b) => (a.shard?.index ?? 0) - (b.shard?.index ?? 0));
  const wanted = shards[0]?.shard?.count ?? 1;
  const complete = new Set(shards.map((s) => s.shard?.index ?? 1)).size === wanted;
  const spoilt = shards.find((s) => s.facts.broken !== undefined);
  const named = (s: (typeof shards)[number]) => (shards.length > 1 ? `${s.file.name}: ` : '');
  const geometry = complete && spoilt === undefined ? geometryOf(shards.map((s) => s.facts)) : undefined;
  const broken =
    spoilt?.facts.broken === undefined
      ? geometry !== undefined && 'broken' in geometry
        ? geometry.broken
        : undefined
      : named(spoilt) + spoilt.facts.broken;
  const artifact: Artifact = {
    label,
    files: shards.map((s) => ({ name: s.file.name, bytes: s.file.bytes })),
    complete,
    ...(broken === undefined ? {} : { broken }),
    ...(geometry === undefined || 'broken' in geometry ? {} : { geometry }),
  };
  return { artifact, quant, paths: shards.map((s) => s.file.absolute) };
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

/** What can be loaded comes first, then by precision, then the larger, then by name. */
function rankOf(artifact: Artifact): readonly (number | string)[] {
  const usable = artifact.complete && artifact.broken === undefined;
  const label = readName(artifact.label).label ?? artifact.label;
  const bytes = artifact.files.reduce((total, file) => total + file.bytes, 0);
  return [usable ? 0 : 1, qualityRank(label), -bytes, artifact.label];
}

function compare(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (const [i, x] of a.entries()) {
    const y = b[i] ?? 0;
    if (x !== y) return x < y ? -1 : 1;
  }
  return 0;
}

/** As the best readable artifact says; a model of which nothing can be read is listed as chat. */
const kindOf = (artifacts: readonly Artifact[]): ModelKind =>
  artifacts.find((a) => a.geometry !== undefined)?.geometry?.kind ?? 'chat';

const baseName = (name: string) => name.split('/').at(-1) ?? name;

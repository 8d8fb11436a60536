import type { ModelFile } from '#domain/events/catalog-events.js';
import type { FileFacts } from './file-facts.js';
import { baseName } from './file-names.js';
import { readName } from './quant.js';
import type { ModelFolder } from './model-folders.js';

export type FolderFile = ModelFolder['files'][number];

/** A weight file and what its header says. */
export interface ReadFile {
  readonly file: FolderFile;
  readonly facts: FileFacts;
}

/** Files of one artifact, in the order of their numbers, and which of them are not there. */
export interface ShardSet {
  readonly shards: readonly ReadFile[];
  readonly missing: readonly string[];
}

/** Sets by their names without the shards' numbers. */
export function shardSets(files: readonly ReadFile[]): readonly ShardSet[] {
  const sets = new Map<string, ReadFile[]>();
  for (const one of files) {
    const { shard } = readName(baseName(one.file.name));
    const set = shard === undefined ? one.file.name : one.file.name.replace(/-\d{5}-of-/i, '-of-');
    sets.set(set, [...(sets.get(set) ?? []), one]);
  }
  return [...sets.values()].map(inOrder);
}

function inOrder(set: readonly ReadFile[]): ShardSet {
  const numbered = set
    .map((one) => ({ one, shard: readName(baseName(one.file.name)).shard }))
    .sort((a, b) => (a.shard?.index ?? 0) - (b.shard?.index ?? 0));
  const { shard, one } = numbered[0] ?? {};
  const there = new Set(numbered.map((n) => n.shard?.index ?? 1));
  const missing: string[] = [];
  // A name may claim any number of shards; a few are enough to say what lacks.
  for (let i = 1; i <= (shard?.count ?? 1) && missing.length < MOST_MISSING; i++) {
    if (!there.has(i)) missing.push(nameOfShard(one?.file.name ?? '', i));
  }
  return { shards: numbered.map((n) => n.one), missing };
}

export const MOST_MISSING = 8;
const nameOfShard = (name: string, index: number): string =>
  name.replace(/-\d{5}-of-(?=\d{5}\.[a-z]+$)/i, `-${String(index).padStart(5, '0')}-of-`);

export const asModelFile = ({ file }: ReadFile): ModelFile => ({ name: file.name, bytes: file.bytes });

/** Why one of the files cannot be loaded, its name before it where there are several. */
export function brokenOf(shards: readonly ReadFile[]): string | undefined {
  const spoilt = shards.find((s) => s.facts.broken !== undefined);
  if (spoilt === undefined) return undefined;
  return (shards.length > 1 ? `${spoilt.file.name}: ` : '') + (spoilt.facts.broken ?? '');
}

import { basename, dirname, join } from 'node:path';
import { isGguf } from './file-names.js';
import { readName } from './quant.js';
import type { ModelRoot } from './roots.js';
import type { ModelFolder } from './model-folders.js';
import { entriesOf, type FolderBudget, realOf, statOf, walk } from './walk.js';

type File = ModelFolder['files'][number];

/**
 * What a running program was started with, if it is on the disk: a GGUF file with the other shards of its set, or a
 * folder for transformers. Nothing else that lies beside it is looked at.
 */
export async function processFolders(root: ModelRoot, budget: FolderBudget): Promise<readonly ModelFolder[]> {
  const { named } = root;
  if (named === undefined) return [];
  const model = await realOf(named.model);
  const stats = model === undefined ? undefined : await statOf(model);
  if (model === undefined || stats === undefined) return [];
  const folder = { aliases: [], root: root.name, path: basename(root.path) } as const;
  if (stats.isDirectory()) {
    const found = await walk(named.model, budget);
    const key = basename(named.model);
    return found.length === 0
      ? []
      : [{ ...folder, key, files: found.map((f) => ({ ...f, name: f.relative })) }];
  }
  if (!stats.isFile() || !isGguf(named.model)) return [];
  // Looked into as far as is needed, and watched.
  budget.take(dirname(named.model));
  const { base, shard } = readName(basename(named.model));
  const set = (name: string) => name.replace(/-\d{5}-of-/i, '-of-');
  const files: File[] = [];
  const add = async (path: string, role?: File['role']): Promise<void> => {
    const absolute = await realOf(path);
    const found = absolute === undefined ? undefined : await statOf(absolute);
    if (absolute === undefined || found?.isFile() !== true) return;
    const name = basename(path);
    files.push({
      relative: name,
      absolute,
      bytes: found.size,
      modifiedMs: found.mtimeMs,
      name,
      ...(role === undefined ? {} : { role }),
    });
  };
  if (shard === undefined) await add(named.model);
  else {
    for (const entry of await entriesOf(dirname(named.model), budget)) {
      if (set(entry.name) === set(basename(named.model))) await add(join(dirname(named.model), entry.name));
    }
  }
  for (const path of named.projectors) await add(path, 'projector');
  for (const path of named.adapters) await add(path, 'adapter');
  return files.length === 0 ? [] : [{ ...folder, key: base === '' ? basename(named.model) : base, files }];
}

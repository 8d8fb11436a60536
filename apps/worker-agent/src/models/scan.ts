import { assemble, type ScannedModel } from './assemble.js';
import { HeaderReader } from './header-reader.js';
import type { ModelRoot } from './roots.js';
import { foldersOf, type ModelFolder } from './stores.js';
import { FolderBudget } from './walk.js';

export { type ScannedModel } from './assemble.js';

export interface Scan {
  /** Sorted by key. */
  readonly models: readonly ScannedModel[];
  /** Every folder that was looked into: a change shows in one of them. */
  readonly folders: readonly string[];
  /** Roots that hold more folders than a scan opens; the rest of them was not seen. */
  readonly cutRoots: readonly string[];
}

/**
 * Looks through the roots. A file that cannot be read is listed as broken, in words; a root that is not there holds
 * nothing. The first root that has a key wins; further names for it are kept as aliases.
 */
export async function scan(
  roots: readonly ModelRoot[],
  reader: HeaderReader,
  nowMs: () => number,
): Promise<Scan> {
  const startedMs = nowMs();
  const found = new Map<string, ModelFolder>();
  const folders: string[] = [];
  const cutRoots: string[] = [];
  for (const root of roots) {
    const budget = new FolderBudget();
    for (const folder of await foldersOf(root, budget)) {
      const known = found.get(folder.key);
      found.set(
        folder.key,
        known === undefined
          ? folder
          : { ...known, aliases: [...new Set([...known.aliases, ...folder.aliases])] },
      );
    }
    folders.push(...budget.opened);
    if (budget.cut) cutRoots.push(root.path);
  }

  const seen = new Set<string>();
  const models: ScannedModel[] = [];
  for (const folder of found.values()) {
    const read = [];
    for (const file of folder.files) {
      seen.add(file.absolute);
      read.push({ file, facts: await reader.read(file.absolute, file) });
    }
    const model = assemble(folder, read, startedMs);
    if (model !== undefined) models.push(model);
  }
  reader.keepOnly(seen);
  models.sort((a, b) => (a.model.modelKey < b.model.modelKey ? -1 : 1));
  return { models, folders, cutRoots };
}

/** Every model below the roots, once. */
export async function scanModels(roots: readonly ModelRoot[]): Promise<readonly ScannedModel[]> {
  const reader = new HeaderReader();
  try {
    return (await scan(roots, reader, Date.now)).models;
  } finally {
    await reader.close();
  }
}

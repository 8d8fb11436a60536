import type { Dirent, Stats } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { FileStamp } from './file-facts.js';
import { isWanted } from './file-names.js';

const MAX_LEVELS = 5;
const MAX_FOLDERS = 4096;

export interface FoundFile extends FileStamp {
  /** Relative to the folder that was walked, with `/`. */
  readonly relative: string;
  /** With links resolved. */
  readonly absolute: string;
}

/** The folders that the scan of a root has opened, and how many more it may. */
export class FolderBudget {
  readonly opened: string[] = [];
  /** True when there were more folders than a scan opens. */
  cut = false;

  take(folder: string): boolean {
    if (this.opened.length >= MAX_FOLDERS) this.cut = true;
    else this.opened.push(folder);
    return !this.cut;
  }
}

/** Entries by name, without hidden ones; none when the folder cannot be read or the budget is spent. */
export async function entriesOf(folder: string, budget: FolderBudget): Promise<readonly Dirent[]> {
  if (!budget.take(folder)) return [];
  // Gone since it was listed, or not ours to read: to a scan it is empty.
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => !entry.name.startsWith('.'))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/**
 * Files that models are made of (weights, and what describes them) below a folder: at most five levels down, hidden names left out, links followed as long as they stay
 * within `bounds` (a model's path never leaves its root).
 */
export async function walk(
  folder: string,
  budget: FolderBudget,
  bounds: string = folder,
): Promise<readonly FoundFile[]> {
  const edge = await realOf(bounds);
  if (edge === undefined) {
    // Looked into all the same, so that its coming is watched for.
    budget.take(folder);
    return [];
  }
  const found: FoundFile[] = [];
  const visited = new Set<string>();
  const visit = async (path: string, relative: string, level: number): Promise<void> => {
    // A link to a folder above, or to one that another name led to already.
    const real = await realOf(path);
    if (real === undefined || visited.has(real)) return;
    visited.add(real);
    const folders: [at: string, below: string][] = [];
    const look = async (entry: Dirent): Promise<FoundFile | undefined> => {
      const at = join(path, entry.name);
      const below = relative === '' ? entry.name : `${relative}/${entry.name}`;
      if (entry.isDirectory()) folders.push([at, below]);
      const isLink = entry.isSymbolicLink();
      if (entry.isDirectory() || (!isLink && !isWanted(entry.name))) return undefined;
      const absolute = isLink ? await realOf(at) : at;
      const stats = absolute === undefined ? undefined : await statOf(absolute);
      if (absolute === undefined || stats === undefined) return undefined;
      if (isLink && !(absolute + sep).startsWith(edge + sep)) return undefined;
      if (stats.isDirectory()) folders.push([at, below]);
      if (!stats.isFile() || !isWanted(entry.name)) return undefined;
      return { relative: below, absolute, bytes: stats.size, modifiedMs: stats.mtimeMs };
    };
    // The files of one folder at once: a disk that is far away answers them together.
    for (const file of await Promise.all((await entriesOf(path, budget)).map(look))) {
      if (file !== undefined) found.push(file);
    }
    if (level >= MAX_LEVELS) return;
    folders.sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [at, below] of folders) await visit(at, below, level + 1);
  };
  await visit(folder, '', 1);
  return found;
}

/** Undefined for what is not there or may not be seen: both are the same to a scan. */
export const realOf = (path: string): Promise<string | undefined> => realpath(path).catch(() => undefined);
export const statOf = (path: string): Promise<Stats | undefined> => stat(path).catch(() => undefined);

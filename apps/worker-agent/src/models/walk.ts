import type { Dirent, Stats } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { FileStamp } from './file-facts.js';
import { isWanted } from './file-names.js';
import { Gate } from './gate.js';

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

/** A disk that is far away answers many at once. */
const AT_ONCE = 32;

/**
 * Files that models are made of (weights, and what describes them) below a folder: at most five levels down, hidden names left out, links followed as long as they stay
 * within `bounds` (a model's path never leaves its root).
 */
export async function walk(
  folder: string,
  budget: FolderBudget,
  bounds: string = folder,
): Promise<readonly FoundFile[]> {
  const [top, edge] = await Promise.all([realOf(folder), realOf(bounds)]);
  if (top === undefined || edge === undefined) {
    // Looked into all the same, so that its coming is watched for.
    budget.take(folder);
    return [];
  }
  const gate = new Gate(AT_ONCE);
  /** Real paths: a link may lead to a folder above, or to one that has been seen. */
  const visited = new Set<string>();
  const links: Folder[] = [];

  const look = async (
    entry: Dirent,
    { path, real, relative, level }: Folder,
  ): Promise<FoundFile | Folder | undefined> => {
    const below = relative === '' ? entry.name : `${relative}/${entry.name}`;
    const at = join(path, entry.name);
    if (entry.isDirectory()) {
      return { path: at, real: join(real, entry.name), relative: below, level: level + 1 };
    }
    const isLink = entry.isSymbolicLink();
    if (!isLink && !isWanted(entry.name)) return undefined;
    const absolute = isLink ? await gate.run(() => realOf(at)) : at;
    if (absolute === undefined || (isLink && !(absolute + sep).startsWith(edge + sep))) return undefined;
    const stats = await gate.run(() => statOf(absolute));
    // Folders by their own names come before links to them.
    if (stats?.isDirectory()) links.push({ path: at, real: absolute, relative: below, level: level + 1 });
    if (!stats?.isFile() || !isWanted(entry.name)) return undefined;
    return { relative: below, absolute, bytes: stats.size, modifiedMs: stats.mtimeMs };
  };
  const visit = async (one: Folder): Promise<readonly FoundFile[]> => {
    if (one.level > MAX_LEVELS || visited.has(one.real)) return [];
    visited.add(one.real);
    const entries = await gate.run(() => entriesOf(one.path, budget));
    const seen = await Promise.all(entries.map((entry) => look(entry, one)));
    const files = seen.filter((s): s is FoundFile => s !== undefined && 'bytes' in s);
    const folders = seen.filter((s): s is Folder => s !== undefined && 'level' in s);
    return [...files, ...(await Promise.all(folders.map(visit))).flat()];
  };
  const found = [...(await visit({ path: folder, real: top, relative: '', level: 1 }))];
  for (let i = 0; i < links.length; i++) {
    const link = links[i];
    if (link !== undefined) found.push(...(await visit(link)));
  }
  return found;
}

interface Folder {
  readonly path: string;
  readonly real: string;
  /** To the folder that is walked. */
  readonly relative: string;
  readonly level: number;
}

/** Undefined for what is not there or may not be seen: both are the same to a scan. */
export const realOf = (path: string): Promise<string | undefined> => realpath(path).catch(() => undefined);
export const statOf = (path: string): Promise<Stats | undefined> => stat(path).catch(() => undefined);

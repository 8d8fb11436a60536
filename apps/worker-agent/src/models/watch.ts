import { watch, type FSWatcher } from 'node:fs';
import { existsSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/**
 * Tells that something changed in one of a set of folders. Folders are watched one by one (a recursive watch opens
 * every file below); a folder that is not there yet is waited for at the nearest one above it.
 */
export class FolderWatch {
  private readonly watchers = new Map<string, FSWatcher>();

  constructor(private readonly onChange: () => void) {}

  /**
   * Watches exactly these from now on.
   * @returns true when a folder was added: what happened in it before is not known, so it must be looked at again.
   */
  set(folders: readonly string[]): boolean {
    const wanted = new Map<string, Set<string> | 'all'>();
    for (const folder of folders) {
      if (existsSync(folder)) {
        wanted.set(folder, 'all');
        continue;
      }
      const { above, next } = nearestAbove(folder);
      const names = wanted.get(above);
      if (names !== 'all') wanted.set(above, new Set([...(names ?? []), next]));
    }
    for (const [key, watcher] of this.watchers) {
      if (!wanted.has(nameOf(key))) this.drop(key, watcher);
    }
    let added = false;
    for (const [folder, names] of wanted) {
      const key = keyOf(folder, names);
      if (this.watchers.has(key)) continue;
      for (const [other, watcher] of this.watchers) if (nameOf(other) === folder) this.drop(other, watcher);
      added = this.add(key, folder, names) || added;
    }
    return added;
  }

  close(): void {
    for (const [key, watcher] of this.watchers) this.drop(key, watcher);
  }

  private add(key: string, folder: string, names: Set<string> | 'all'): boolean {
    try {
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        if (names === 'all' || name === null || names.has(name)) this.onChange();
      });
      watcher.on('error', () => {
        // The folder went away, or the system has no watch left: the change, or the next rescan, shows it.
        this.drop(key, watcher);
        this.onChange();
      });
      this.watchers.set(key, watcher);
      return true;
    } catch {
      // Gone since it was listed, or no watch is left: the regular rescan covers it.
      return false;
    }
  }

  private drop(key: string, watcher: FSWatcher): void {
    watcher.close();
    this.watchers.delete(key);
  }
}

const SEPARATOR = '\0';
const keyOf = (folder: string, names: Set<string> | 'all') =>
  folder + SEPARATOR + (names === 'all' ? '*' : [...names].sort().join(','));
const nameOf = (key: string) => key.slice(0, key.indexOf(SEPARATOR));

function nearestAbove(folder: string): { above: string; next: string } {
  let next = folder;
  for (;;) {
    const above = dirname(next);
    if (above === next || existsSync(above)) return { above, next: basename(next) };
    next = above;
  }
}

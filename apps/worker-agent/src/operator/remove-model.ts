import { lstat, readdir, realpath, rmdir, statfs, unlink } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { modelKey } from '#domain/ids.js';
import { formatBytes } from '#domain/units.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { Catalog } from '../models/catalog.js';
import { isDescribing, isGguf, isPickled, isSafetensors } from '../models/file-names.js';
import { type ActionEnd, done, failed } from './action-end.js';

export interface RemoveModelOptions {
  readonly state: () => WorkerState;
  readonly catalog: Pick<Catalog, 'models' | 'everyFileOf' | 'rescan'>;
  /** Berth's own folder of models: nothing outside it is touched. */
  readonly models: string;
}

/**
 * Removes a model's files, and says what is free again once it is seen: files that other models use stay, a link is only a
 * link, and a file with another name elsewhere frees nothing.
 */
export async function removeModel(key: string, options: RemoveModelOptions): Promise<ActionEnd> {
  const { catalog, models } = options;
  const inUse = [...options.state().residents.values()].find((resident) => resident.modelKey === key);
  if (inUse) return failed(`${key} is loaded (resident ${inUse.residentId}). Evict it first.`);
  const files = catalog.everyFileOf(modelKey(key));
  if (files === undefined) {
    const known = catalog.models().some((model) => model.modelKey === key);
    return known
      ? failed(`${key} lies outside Berth's own folder, and is not Berth's to remove.`)
      : gone(key);
  }
  const root = await realpath(models);
  let freedBytes = 0;
  let removed = 0;
  for (const file of files) {
    if (!(await isWithin(root, file)))
      return failed(`${key} has a file outside ${models}; nothing more was removed.`);
    const before = await lstat(file).catch(() => undefined);
    if (!before) continue;
    await unlink(file);
    if (await lstat(file).catch(() => undefined))
      return failed(`A file of ${key} is still there after it was removed.`);
    removed += 1;
    // Blocks are what the disk gave; another name for the same file keeps them.
    if (before.nlink === 1) freedBytes += before.blocks * 512;
  }
  for (const folder of new Set(files.map((file) => dirname(file)))) await tidy(folder, models);
  await catalog.rescan();
  if (catalog.models().some((model) => model.modelKey === key))
    return failed(`${key} is still found after ${removed} files of it were removed.`);
  const { bavail, bsize } = await statfs(models);
  return done(
    `${key} is gone: ${removed} files, ${formatBytes(freedBytes)} freed; ${formatBytes(bavail * bsize)} are free on the drive.`,
  );
}

const gone = (key: string): ActionEnd => done(`${key} is not on this machine: nothing was left to do.`);

/** By where its folder really is: the file itself may be a link, which alone is removed. */
async function isWithin(root: string, file: string): Promise<boolean> {
  const folder = await realpath(dirname(file)).catch(() => undefined);
  if (folder === undefined) return true;
  const path = relative(root, folder);
  return path !== '..' && !path.startsWith(`..${sep}`);
}

/** What only described the weights goes with them; then every folder that is empty, up to the root. */
async function tidy(folder: string, models: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  if (folder !== models && !names.some((name) => isGguf(name) || isSafetensors(name) || isPickled(name)))
    for (const name of names.filter(isDescribing)) await unlink(join(folder, name));
  for (let at = folder; at !== models && at.startsWith(models); at = dirname(at)) {
    try {
      await rmdir(at);
    } catch {
      // Something else lies in it, which is nobody's to remove.
      return;
    }
  }
}

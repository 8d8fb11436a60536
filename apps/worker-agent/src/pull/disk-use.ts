import { lstat, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newId } from '#runtime/ids.js';
import { isAlive, pidStartTicks } from '#runtime/process-info.js';

/** A file that is to be fetched. */
export interface Coming {
  readonly target: string;
  readonly bytes: number;
}

interface Note {
  readonly pid: number;
  readonly startTicks?: number;
  readonly coming: readonly Coming[];
}

/** Hidden, so that no scan of models opens it. */
const NOTE = /^\.pulling-.+\.json$/;

/** What is still to come of a file beyond what is on the disk: whole, or as the part that it grows in. */
export async function missingBytes({ target, bytes }: Coming): Promise<number> {
  if ((await sizeOf(target)) === bytes) return 0;
  const part = await sizeOf(`${target}.part`);
  // One that is larger is of another file, and begun anew.
  return part > bytes ? bytes : bytes - part;
}

/** Bytes of all files below a folder, each once whatever its names. A link takes nothing. */
export async function bytesBelow(folder: string, seen = new Set<string>()): Promise<number> {
  let sum = 0;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (NOTE.test(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) sum += await bytesBelow(path, seen);
    if (!entry.isFile()) continue;
    // A file may get its name, or go, between the list and the look.
    const stats = await lstat(path).catch(() => undefined);
    if (stats === undefined || seen.has(`${stats.dev}:${stats.ino}`)) continue;
    if (stats.nlink > 1) seen.add(`${stats.dev}:${stats.ino}`);
    sum += stats.size;
  }
  return sum;
}

/**
 * Says in the folder of models what a transfer is about to write, for those of other processes: the agent fetches one at a
 * time, but commands fetch beside it.
 * @returns what takes the note away again.
 */
export async function noteTransfer(models: string, coming: readonly Coming[]): Promise<() => Promise<void>> {
  const startTicks = pidStartTicks(process.pid);
  const note: Note = { pid: process.pid, ...(startTicks === undefined ? {} : { startTicks }), coming };
  const path = join(models, `.pulling-${newId()}.json`);
  // Never read half written.
  await writeFile(`${path}.new`, JSON.stringify(note), { mode: 0o600 });
  await rename(`${path}.new`, path);
  return () => rm(path, { force: true });
}

/** What transfers of processes that live still bring, without these files. What a dead one noted is cleared away. */
export async function bytesComing(models: string, own: readonly Coming[]): Promise<number> {
  const mine = new Set(own.map(({ target }) => target));
  const others = new Map<string, number>();
  for (const name of await readdir(models)) {
    if (!NOTE.test(name)) continue;
    const text = await readFile(join(models, name), 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    const { pid, startTicks, coming } = JSON.parse(text) as Note;
    if (!isAlive(pid, startTicks)) await rm(join(models, name), { force: true });
    else for (const file of coming) if (!mine.has(file.target)) others.set(file.target, file.bytes);
  }
  let sum = 0;
  for (const [target, bytes] of others) sum += await missingBytes({ target, bytes });
  return sum;
}

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => undefined))?.size ?? 0;

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isObject, type Json } from './describing.js';
import { MARKER } from './file-names.js';

/** Where the marker of a model lies that has none beside it, or none that can be put right there. */
export const sidecarOf = (folder: string, key: string): string =>
  join(folder, `${encodeURIComponent(key).replaceAll('*', '%2A')}.json`);

const MOST_BYTES = 64 * 1024;

/** Those that there are, by the model's key; what is no JSON object is left out. */
export async function readSidecars(folder: string | undefined): Promise<ReadonlyMap<string, Json>> {
  const found = new Map<string, Json>();
  if (folder === undefined) return found;
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.endsWith('.json')) continue;
    try {
      const key = decodeURIComponent(name.slice(0, -'.json'.length));
      const text = await readFile(join(folder, name), 'utf8');
      const content: unknown = text.length > MOST_BYTES ? undefined : JSON.parse(text);
      if (isObject(content)) found.set(key, content);
    } catch {
      // Another's, or being written: to this scan it says nothing.
    }
  }
  return found;
}

/**
 * Which marker holds: the one beside the model, unless a sidecar puts right that very text; else the sidecar.
 */
export function markerOf(
  beside: Json | undefined,
  sidecar: Json | undefined,
): { readonly said: Json; readonly source: 'beside' | 'sidecar' } | undefined {
  if (beside === undefined) return sidecar === undefined ? undefined : { said: sidecar, source: 'sidecar' };
  return sidecar !== undefined && sidecar['of'] === digestOf(beside)
    ? { said: sidecar, source: 'sidecar' }
    : { said: beside, source: 'beside' };
}

const digestOf = (marker: Json): string => createHash('sha256').update(JSON.stringify(marker)).digest('hex');

/**
 * Writes a marker that was put right: in its place where the folder is ours to write, else as a sidecar that says
 * which text it puts right. Nothing is written when it is there already.
 * @param beside the marker that lies beside the model; undefined when there is none.
 * @param folder the model's own folder; undefined where other models share it or another program keeps it.
 * @returns whether anything was written.
 */
export async function writeMarker(
  marker: Json,
  key: string,
  beside: Json | undefined,
  folder: string | undefined,
  sidecars: string,
): Promise<boolean> {
  const textOf = (content: Json) => `${JSON.stringify(content, undefined, 2)}\n`;
  if (beside !== undefined && folder !== undefined && (await isWritable(folder))) {
    return replace(join(folder, MARKER), textOf(marker));
  }
  await mkdir(sidecars, { recursive: true, mode: 0o700 });
  const of = beside === undefined ? {} : { of: digestOf(beside) };
  return replace(sidecarOf(sidecars, key), textOf({ ...marker, ...of }));
}

async function replace(path: string, text: string): Promise<boolean> {
  if ((await readFile(path, 'utf8').catch(() => undefined)) === text) return false;
  const part = join(dirname(path), `.${process.pid}.berth.part`);
  try {
    await writeFile(part, text, { mode: 0o600 });
    await rename(part, path);
    return true;
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

const isWritable = (folder: string): Promise<boolean> =>
  access(folder, constants.W_OK).then(
    () => true,
    () => false,
  );

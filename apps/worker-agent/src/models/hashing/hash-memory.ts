import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isObject } from '../describing.js';
import type { FileStamp } from '../file-facts.js';
import type { Sha256State } from './sha256.js';

export interface Hashed extends FileStamp {
  readonly sha256: string;
  readonly seconds: number;
}
/** A hash that was begun and not ended. */
export interface Begun extends FileStamp {
  readonly state: Sha256State;
  readonly seconds: number;
}
export interface HashMemory {
  readonly hashed: Map<string, Hashed>;
  readonly begun: Map<string, Begun>;
}

/** What an earlier run hashed; empty when there is no memory or it is of no use: then files are hashed again. */
export async function recallHashes(file: string): Promise<HashMemory> {
  const memory: HashMemory = { hashed: new Map(), begun: new Map() };
  let content: unknown;
  try {
    content = JSON.parse(await readFile(file, 'utf8'));
  } catch {
    return memory;
  }
  if (!isObject(content)) return memory;
  for (const [path, one] of entriesOf(content['hashed'])) {
    const { sha256 } = one;
    if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) continue;
    memory.hashed.set(path, { ...one, sha256 });
  }
  for (const [path, one] of entriesOf(content['begun'])) {
    const { state } = one;
    if (!isState(state) || state.bytes > one.bytes) continue;
    memory.begun.set(path, { ...one, state });
  }
  return memory;
}

export async function rememberHashes(file: string, memory: HashMemory): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const part = `${file}.${process.pid}.part`;
  const text = JSON.stringify({
    hashed: Object.fromEntries(memory.hashed),
    begun: Object.fromEntries(memory.begun),
  });
  await writeFile(part, text, { mode: 0o600 });
  await rename(part, file);
}

type Entry = FileStamp & { readonly seconds: number; readonly sha256?: unknown; readonly state?: unknown };

function entriesOf(value: unknown): readonly (readonly [string, Entry])[] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([path, one]) => {
    if (!isObject(one)) return [];
    const { bytes, modifiedMs, seconds } = one;
    if (typeof bytes !== 'number' || typeof modifiedMs !== 'number' || typeof seconds !== 'number') return [];
    return [[path, { bytes, modifiedMs, seconds, sha256: one['sha256'], state: one['state'] }] as const];
  });
}

const isState = (value: unknown): value is Sha256State =>
  isObject(value) &&
  Number.isSafeInteger(value['bytes']) &&
  (value['bytes'] as number) >= 0 &&
  (value['bytes'] as number) % 64 === 0 &&
  Array.isArray(value['words']) &&
  value['words'].length === 8 &&
  value['words'].every((word) => Number.isInteger(word));

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { FileFacts, FileStamp } from './file-facts.js';

export type Remembered = FileStamp & { readonly facts: FileFacts };

/** Raised when the meaning of the facts changes: older memories are then not read. */
const VERSION = 3;

/** Headers that an earlier run read; none when there is no memory or it is of no use. It is a cache: losing it costs time. */
export async function recall(file: string): Promise<ReadonlyMap<string, Remembered>> {
  try {
    const content: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (!isMemory(content)) return new Map();
    return new Map(Object.entries(content.files).filter(([, entry]) => isEntry(entry)));
  } catch {
    // Not there yet, or damaged: everything is read again.
    return new Map();
  }
}

export async function remember(file: string, known: ReadonlyMap<string, Remembered>): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const part = `${file}.${process.pid}.part`;
  await writeFile(part, JSON.stringify({ version: VERSION, files: Object.fromEntries(known) }), {
    mode: 0o600,
  });
  await rename(part, file);
}

function isMemory(content: unknown): content is { files: Record<string, Remembered> } {
  if (typeof content !== 'object' || content === null) return false;
  const { version, files } = content as { version?: unknown; files?: unknown };
  return version === VERSION && typeof files === 'object' && files !== null;
}

function isEntry(entry: unknown): entry is Remembered {
  if (typeof entry !== 'object' || entry === null) return false;
  const { bytes, modifiedMs, facts } = entry as Partial<Record<keyof Remembered, unknown>>;
  if (typeof bytes !== 'number' || typeof modifiedMs !== 'number') return false;
  if (typeof facts !== 'object' || facts === null) return false;
  const { values, tensors } = facts as Partial<Record<keyof FileFacts, unknown>>;
  return typeof values === 'object' && values !== null && Array.isArray(tensors);
}

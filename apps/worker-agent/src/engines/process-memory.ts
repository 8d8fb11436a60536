import { readFileSync, statSync } from 'node:fs';

/** What the operating system says of a process; fields are missing where the system does not say. */
export interface ProcessMemory {
  readonly residentBytes?: number;
  readonly anonymousBytes?: number;
  readonly filePagesBytes?: number;
}

export function parseStatus(status: string): ProcessMemory {
  const bytes = (name: string): number | undefined => {
    const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  };
  return withoutUndefined({
    residentBytes: bytes('VmRSS'),
    anonymousBytes: bytes('RssAnon'),
    filePagesBytes: bytes('RssFile'),
  });
}

export function readProcessMemory(pid: number): ProcessMemory {
  const text = readText(`/proc/${pid}/status`);
  return text === undefined ? {} : parseStatus(text);
}

/**
 * How much of the weight files a process has in memory, as its mappings say. An engine that reads instead of mapping
 * has them in anonymous memory.
 */
export function readLoadedBytes(pid: number, files: readonly string[]): number {
  const mapped = mappedResidentBytes(readText(`/proc/${pid}/smaps`) ?? '', new Set(files));
  return mapped > 0 ? mapped : (readProcessMemory(pid).anonymousBytes ?? 0);
}

/** Resident bytes of the mappings of these files, from the text of `smaps`. */
export function mappedResidentBytes(smaps: string, files: ReadonlySet<string>): number {
  let wanted = false;
  let bytes = 0;
  for (const line of smaps.split('\n')) {
    const head = /^[\da-f]+-[\da-f]+ \S+ \S+ \S+ \d+\s*(.*)$/.exec(line);
    if (head) wanted = files.has(head[1] ?? '');
    else if (wanted && line.startsWith('Rss:')) bytes += Number(/\d+/.exec(line)?.[0] ?? 0) * 1024;
  }
  return bytes;
}

/** @param goneBytes what a file counts that is not there */
export const totalFileBytes = (files: readonly string[], goneBytes = 0): number =>
  files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? goneBytes), 0);

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // Gone, not ours to read, or no /proc.
    return undefined;
  }
}

function withoutUndefined(memory: { [K in keyof ProcessMemory]: number | undefined }): ProcessMemory {
  return Object.fromEntries(Object.entries(memory).filter(([, value]) => value !== undefined));
}

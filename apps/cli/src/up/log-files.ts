import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { join } from 'node:path';

const ROTATE_AT_START_BYTES = 4 * 1024 * 1024;
const ROTATE_WHILE_OPEN_BYTES = 16 * 1024 * 1024;
const KEPT = 3;

/** One file per process; the processes write into it themselves, so that a killed supervisor breaks no pipe. */
export class LogFiles {
  readonly #folder: string;
  readonly #names = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#timer = setInterval(() => this.#shrink(), 30_000).unref();
  }

  path(name: string): string {
    return join(this.#folder, `${name}.log`);
  }

  /** Moves a long log away; called before a process opens it. */
  prepare(name: string): string {
    const path = this.path(name);
    if (!this.#names.has(name) && sizeOf(path) > ROTATE_AT_START_BYTES) {
      shift(path);
      renameSync(path, `${path}.1`);
    }
    this.#names.add(name);
    return path;
  }

  /** A descriptor to hand to a child; close it after the fork. */
  open(name: string): number {
    return openSync(this.prepare(name), 'a', 0o600);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** The processes hold the file open for appending, so it is copied and cut, not moved. */
  #shrink(): void {
    for (const name of this.#names) {
      const path = this.path(name);
      if (sizeOf(path) <= ROTATE_WHILE_OPEN_BYTES) continue;
      shift(path);
      copyFileSync(path, `${path}.1`);
      truncateSync(path);
    }
  }
}

/** Everything that was written since a position, at most the last 64 KiB of it. */
export function readFrom(path: string, from: number): { readonly text: string; readonly end: number } {
  const size = sizeOf(path);
  const start = size < from ? 0 : Math.max(from, size - 64 * 1024);
  if (size <= start) return { text: '', end: size };
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(size - start);
    const read = readSync(file, bytes, 0, bytes.length, start);
    return { text: bytes.subarray(0, read).toString(), end: start + read };
  } finally {
    closeSync(file);
  }
}

/** The last lines written since a position, for a person: of our own JSON lines the message, of others the line. */
export function tailFrom(path: string, from: number, lines = 8): readonly string[] {
  return readFrom(path, from).text.trimEnd().split('\n').filter(Boolean).slice(-lines).map(readable);
}

export function readable(line: string): string {
  if (!line.startsWith('{')) return line;
  try {
    const entry = JSON.parse(line) as { msg?: unknown; time?: unknown };
    if (typeof entry.msg !== 'string') return line;
    return typeof entry.time === 'string' ? `${entry.time.slice(11, 23)} ${entry.msg}` : entry.msg;
  } catch {
    return line;
  }
}

export const sizeOf = (path: string): number => (existsSync(path) ? statSync(path).size : 0);

function shift(path: string): void {
  for (let i = KEPT - 1; i >= 1; i--) {
    if (existsSync(`${path}.${i}`)) renameSync(`${path}.${i}`, `${path}.${i + 1}`);
  }
}

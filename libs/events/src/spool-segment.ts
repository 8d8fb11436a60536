import {
  closeSync,
  ftruncateSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  write,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { countedBytes, encodedBytes } from './codec.js';
import { formatTexts, parseEntries, type SpoolEntry, type SpoolText } from './spool-format.js';

const NAME = /^(\d+)-(\d+)\.spool$/;

/** What counts against the bound. */
export const entryBytes = (entry: SpoolEntry): number =>
  (entry.eventBytes ?? encodedBytes(entry.event)) + entry.stream.length;

/** The same, before it is an entry. */
export const textBytes = ({ stream, event, dataBytes, metadataBytes }: SpoolText): number =>
  countedBytes(event.type, metadataBytes, dataBytes) + stream.length;

const NOTHING = Buffer.alloc(0);
const TAKEN: SpoolEntry = { stream: '', event: { id: '', type: '', metadata: NOTHING, data: NOTHING } };

/** One file of the spool, and as much of it in memory as is at work. */
export class Segment {
  readonly path: string;
  /** Undefined: on disk only. */
  entries: SpoolEntry[] | undefined;
  /** How many of the entries, from the first, the log has taken; those are not to be looked at any more. */
  confirmed = 0;
  /** Nothing is written to it any more. */
  sealed: boolean;
  /** Bytes of the file. */
  fileBytes = 0;
  /** Bytes of the entries that were given to it. */
  heldBytes = 0;
  /** Left behind by another process: what is in it is known only once it is read. */
  readonly adopted: boolean;
  /** Some of its entries could not be written: they are in memory alone. */
  memoryOnly = false;
  #fd: number | undefined;

  private constructor(path: string, entries: SpoolEntry[] | undefined) {
    this.path = path;
    this.entries = entries;
    this.sealed = entries === undefined;
    this.adopted = this.sealed;
  }

  static create(dir: string, number: number): Segment {
    const name = `${process.pid}-${String(number).padStart(8, '0')}.spool`;
    return new Segment(join(dir, name), []);
  }

  static found(path: string): Segment {
    const segment = new Segment(path, undefined);
    segment.fileBytes = statSync(path).size;
    return segment;
  }

  /** Adds entries with one write. A file that cannot be written leaves them in memory: the log may still take them. */
  write(texts: readonly SpoolText[], done: (error: Error | null) => void): void {
    const { bytes, entries } = formatTexts(texts);
    const finish = (error: Error | null) => {
      if (error) this.memoryOnly = true;
      this.entries?.push(...entries);
      done(error);
    };
    for (const text of texts) this.heldBytes += textBytes(text);
    try {
      this.#fd ??= openSync(this.path, 'a', 0o600);
      const fd = this.#fd;
      const next = (from: number) => {
        write(fd, bytes, from, bytes.length - from, null, (error, written) => {
          if (error) {
            finish(error);
            return;
          }
          this.fileBytes += written;
          if (from + written < bytes.length) next(from + written);
          else finish(null);
        });
      };
      next(0);
    } catch (error) {
      setImmediate(() => finish(error as Error));
    }
  }

  /** Brings the entries into memory; damage is set aside beside the segment, and said. */
  async load(warn: (message: string) => void): Promise<SpoolEntry[]> {
    if (this.entries) return this.entries;
    const bytes = await readFile(this.path);
    const { entries, damaged } = parseEntries(bytes);
    if (damaged.length > 0) {
      const aside = `${this.path}.damaged`;
      const lost = damaged.map(({ from, to }) => bytes.subarray(from, to));
      try {
        writeFileSync(aside, Buffer.concat(lost), { mode: 0o600 });
      } catch {
        // The bytes are of no use to anybody but a curious person; a full disk is no reason to stop.
      }
      const size = lost.reduce((sum, part) => sum + part.length, 0);
      warn(
        `${size} bytes of the spool file ${basename(this.path)} are damaged and were set aside as ${basename(aside)}; ${entries.length} events in it are sound and will be appended.`,
      );
    }
    this.entries = [...entries];
    return this.entries;
  }

  /** The log has taken the next of them: they keep their places, and nothing else. */
  confirm(count: number): void {
    this.entries?.fill(TAKEN, this.confirmed, this.confirmed + count);
    this.confirmed += count;
  }

  /** Lets go of the memory of a segment whose turn is far off. */
  unload(): void {
    if (this.sealed && !this.memoryOnly && this.confirmed === 0) this.entries = undefined;
  }

  /** Empties the file that is being written to, once the log has everything in it. */
  reset(): void {
    this.entries = [];
    this.confirmed = 0;
    this.memoryOnly = false;
    this.heldBytes = 0;
    if (this.#fd === undefined || this.fileBytes === 0) return;
    this.fileBytes = 0;
    // At once: a truncation that is done later would take the next write with it.
    ftruncateSync(this.#fd, 0);
  }

  seal(): void {
    this.sealed = true;
    this.closeFile();
  }

  closeFile(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  remove(): void {
    this.closeFile();
    rmSync(this.path, { force: true });
  }
}

/** Segments that no living process writes to, oldest first: those of earlier lives, this process's own pid among them. */
export function orphanedSegments(dir: string, own: ReadonlySet<string>): Segment[] {
  return readdirSync(dir)
    .flatMap((name) => {
      const match = NAME.exec(name);
      const path = join(dir, name);
      return match && !own.has(path) && !isAnother(Number(match[1]))
        ? [{ path, order: statSync(path).mtimeMs, name }]
        : [];
    })
    .sort((a, b) => a.order - b.order || (a.name < b.name ? -1 : 1))
    .map(({ path }) => Segment.found(path));
}

function isAnother(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

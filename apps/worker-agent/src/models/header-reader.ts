import { type FileFacts, type FileStamp, notNow } from './file-facts.js';
import { Gate } from './gate.js';
import { readGguf } from './gguf-file.js';
import { recall, remember, type Remembered } from './header-memory.js';
import { HeaderThread } from './header-thread.js';
import { ReadOnly } from './read-only.js';
import { readSafetensors } from './safetensors-header.js';

/** A file in a cache has no ending to tell it by: whoever found it knows. */
export type HeaderFormat = 'gguf' | 'safetensors';

/** A disk that is far away answers many at once; more would only fill memory. */
const AT_ONCE = 16;
const DEADLINE_MS = 20_000;
/** JSON of such a length is taken apart in a few milliseconds. */
const SHORT_JSON_BYTES = 1024 * 1024;

/**
 * Reads headers, a few at once, and remembers them: an unchanged file (path, size, time) is not opened again. A disk
 * that does not answer makes its file broken for the time being.
 */
export class HeaderReader {
  private known: Map<string, Remembered> | undefined;
  private recalling: Promise<Map<string, Remembered>> | undefined;
  private changed = false;
  private readonly gate = new Gate(AT_ONCE);
  private readonly thread = new HeaderThread(DEADLINE_MS);
  /** Headers really read, for tests and logs. */
  reads = 0;

  /** @param memory file in which headers are remembered over a restart; none when left out. */
  constructor(private readonly memory?: string) {}

  async read(file: string, stamp: FileStamp, format: HeaderFormat = 'gguf'): Promise<FileFacts> {
    const known = (this.known ?? (await this.recalled())).get(file);
    if (known?.bytes === stamp.bytes && known.modifiedMs === stamp.modifiedMs) return known.facts;
    return this.gate.run(async () => {
      this.reads += 1;
      const { bytes, modifiedMs } = stamp;
      const facts = await withinDeadline(
        format === 'gguf' ? readGguf(file, bytes) : this.safetensors(file, bytes),
      );
      if (facts.passing !== true) {
        this.known?.set(file, { bytes, modifiedMs, facts });
        this.changed = true;
      }
      return facts;
    });
  }

  /** Forgets files that are not among these. */
  keepOnly(files: { has(file: string): boolean }): void {
    for (const file of this.known?.keys() ?? []) {
      if (files.has(file)) continue;
      this.known?.delete(file);
      this.changed = true;
    }
  }

  /** Writes what is known into the memory, when it changed. */
  async save(): Promise<void> {
    if (this.memory === undefined || this.known === undefined || !this.changed) return;
    this.changed = false;
    await remember(this.memory, this.known);
  }

  close(): Promise<void> {
    return this.thread.close();
  }

  private recalled(): Promise<Map<string, Remembered>> {
    this.recalling ??= (async () => {
      this.known = new Map(this.memory === undefined ? [] : await recall(this.memory));
      return this.known;
    })();
    return this.recalling;
  }

  private async safetensors(path: string, bytes: number): Promise<FileFacts> {
    const file = await ReadOnly.open(path);
    try {
      const facts = await readSafetensors(file, bytes, SHORT_JSON_BYTES);
      return facts === 'long' ? await this.thread.read(path, bytes) : facts;
    } finally {
      file.close();
    }
  }
}

/** What the system says of a file that cannot be opened says nothing of the file: it is tried again. */
function withinDeadline(reading: Promise<FileFacts>): Promise<FileFacts> {
  return new Promise((resolve) => {
    const deadline = setTimeout(
      () => resolve(notNow(`its header could not be read within ${DEADLINE_MS / 1000} s`)),
      DEADLINE_MS,
    );
    reading
      .catch((error: unknown) =>
        notNow(`it cannot be opened: ${error instanceof Error ? error.message : String(error)}`),
      )
      .then((facts) => {
        clearTimeout(deadline);
        resolve(facts);
      })
      .catch(() => undefined);
  });
}

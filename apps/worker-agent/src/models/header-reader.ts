import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { packageRoot } from '#runtime/process-info.js';
import { recall, remember, type Remembered } from './header-memory.js';
import type { FileFacts, FileStamp } from './file-facts.js';
// As types only: the parser is loaded by the thread alone.
import type { HeaderAnswer, HeaderRequest } from './header-worker.js';

const DEADLINE_MS = 20_000;
const HEAP_MB = 1024;
/** The thread is ended when nothing was read for so long; the next read starts another. */
const IDLE_MS = 5_000;

interface Waiting {
  readonly file: string;
  resolve(facts: FileFacts): void;
}

const notNow = (why: string): FileFacts => ({
  values: {},
  tensors: [],
  mainType: 'none',
  broken: why,
  passing: true,
});

/**
 * Reads headers one after another in a thread of its own, and remembers them: an unchanged file (path, size, time)
 * is not opened again. A file on which the parser hangs or runs out of memory is broken; the next gets a new
 * thread.
 */
export class HeaderReader {
  private known: Map<string, Remembered> | undefined;
  private changed = false;
  private queue: Promise<unknown> = Promise.resolve();
  private worker: Worker | undefined;
  private waiting: Waiting | undefined;
  private nextId = 0;
  private idle: NodeJS.Timeout | undefined;
  /** Headers really read, for tests and logs. */
  reads = 0;

  /** @param memory file in which headers are remembered over a restart; none when left out. */
  constructor(private readonly memory?: string) {}

  read(file: string, stamp: FileStamp, format: HeaderRequest['format'] = 'gguf'): Promise<FileFacts> {
    const result = this.queue.then(() => this.readNow(file, stamp, format));
    this.queue = result.catch(() => undefined);
    return result;
  }

  /** Forgets files that are not among these. */
  keepOnly(files: ReadonlySet<string>): void {
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

  async close(): Promise<void> {
    clearTimeout(this.idle);
    const worker = this.worker;
    this.worker = undefined;
    await worker?.terminate();
  }

  private async readNow(file: string, stamp: FileStamp, format: HeaderRequest['format']): Promise<FileFacts> {
    this.known ??= new Map(this.memory === undefined ? [] : await recall(this.memory));
    const known = this.known.get(file);
    if (known?.bytes === stamp.bytes && known.modifiedMs === stamp.modifiedMs) return known.facts;
    this.reads += 1;
    clearTimeout(this.idle);
    const facts = await this.ask(file, format);
    if (facts.passing !== true) {
      this.known.set(file, { bytes: stamp.bytes, modifiedMs: stamp.modifiedMs, facts });
      this.changed = true;
    }
    this.idle = setTimeout(() => void this.close(), IDLE_MS).unref();
    return facts;
  }

  private ask(file: string, format: HeaderRequest['format']): Promise<FileFacts> {
    const worker = (this.worker ??= this.start());
    const id = ++this.nextId;
    return new Promise((resolve) => {
      const end = (facts: FileFacts) => {
        clearTimeout(deadline);
        worker.off('message', onMessage);
        this.waiting = undefined;
        resolve(facts);
      };
      const deadline = setTimeout(() => {
        void this.drop(worker);
        end(notNow(`its header could not be read within ${DEADLINE_MS / 1000} s`));
      }, DEADLINE_MS);
      const onMessage = (answer: HeaderAnswer) => {
        if (answer.id === id) end(answer.facts);
      };
      worker.on('message', onMessage);
      this.waiting = { file, resolve: end };
      worker.postMessage({ id, file, format } satisfies HeaderRequest);
    });
  }

  private start(): Worker {
    const worker = new Worker(workerScript(), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    });
    // It must not hold up the end of the process.
    worker.unref();
    const lost = (why: string) => {
      if (this.worker === worker) this.worker = undefined;
      this.waiting?.resolve(notNow(why));
    };
    worker.on('error', (error) => lost(`its header could not be read: ${error.message}`));
    worker.on('exit', (code) => lost(`the thread that read its header ended with code ${code}`));
    return worker;
  }

  private async drop(worker: Worker): Promise<void> {
    if (this.worker === worker) this.worker = undefined;
    worker.removeAllListeners('exit');
    await worker.terminate();
  }
}

/** A thread runs built code, also when this file runs from its source (tests). */
function workerScript(): string {
  const beside = fileURLToPath(new URL('./header-worker.js', import.meta.url));
  return existsSync(beside)
    ? beside
    : join(packageRoot(), 'dist/apps/worker-agent/src/models/header-worker.js');
}

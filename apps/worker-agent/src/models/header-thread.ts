import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { packageRoot } from '#runtime/process-info.js';
import { type FileFacts, notNow } from './file-facts.js';
// As types only: the parser is loaded by the thread alone.
import type { HeaderAnswer, HeaderRequest } from './header-worker.js';

const HEAP_MB = 1024;
/** The thread is ended when nothing was read for so long; the next read starts another. */
const IDLE_MS = 5_000;

/** Reads long headers one after another in a thread of its own; one on which it hangs or runs out of memory gets a new thread. */
export class HeaderThread {
  private queue: Promise<unknown> = Promise.resolve();
  private worker: Worker | undefined;
  private waiting: ((facts: FileFacts) => void) | undefined;
  private nextId = 0;
  private idle: NodeJS.Timeout | undefined;

  constructor(private readonly deadlineMs: number) {}

  read(file: string, bytes: number): Promise<FileFacts> {
    const result = this.queue.then(() => {
      clearTimeout(this.idle);
      return this.ask(file, bytes);
    });
    this.queue = result.then(() => {
      this.idle = setTimeout(() => void this.close(), IDLE_MS).unref();
    });
    return result;
  }

  async close(): Promise<void> {
    clearTimeout(this.idle);
    const { worker } = this;
    this.worker = undefined;
    await worker?.terminate();
  }

  private ask(file: string, bytes: number): Promise<FileFacts> {
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
        end(notNow(`its header could not be read within ${this.deadlineMs / 1000} s`));
      }, this.deadlineMs);
      const onMessage = (answer: HeaderAnswer) => {
        if (answer.id === id) end(answer.facts);
      };
      worker.on('message', onMessage);
      this.waiting = end;
      worker.postMessage({ id, file, bytes } satisfies HeaderRequest);
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
      this.waiting?.(notNow(why));
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

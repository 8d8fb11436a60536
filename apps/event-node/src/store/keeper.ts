import { performance } from 'node:perf_hooks';
import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { query, type Sqlite } from './database.js';
import { messageOf } from '../errors.js';
import type { KeeperJob, KeeperReply } from './keeper-jobs.js';

const LOOK_EVERY_MS = 250;
/** From this size on the write-ahead log is copied into the file. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024;
/** Writers have outrun the copying for long: they wait once, or the write-ahead log would grow without end. */
const FORCE_BYTES = 256 * 1024 * 1024;
const FORCE_EVERY_MS = 5000;

/**
 * Copies the write-ahead log into the file, on a connection of its own in a thread of its own: a checkpoint syncs tens
 * of MB, and on the committing connection that would be somebody's append.
 */
export class Keeper {
  #worker: Worker | undefined;
  #busy = false;
  #forcedAt = -Infinity;
  readonly #timer: NodeJS.Timeout;

  constructor(
    readonly file: string,
    readonly db: Sqlite,
    /** False where no thread can be started (sources run without a build): checkpoints then run in between. */
    readonly inThread: boolean,
    readonly say: (message: string) => void,
  ) {
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#worker?.terminate();
    this.#worker = undefined;
  }

  #look(): void {
    const bytes = walBytes(this.file);
    const forced = bytes > FORCE_BYTES && performance.now() - this.#forcedAt > FORCE_EVERY_MS;
    if (forced || (!this.inThread && bytes > CHECKPOINT_BYTES)) {
      this.#forcedAt = performance.now();
      // While a backup reads, this only copies what it can: the write-ahead log starts anew when the backup is done.
      query(this.db, 'pragma wal_checkpoint(restart)').all([]);
    } else if (bytes > CHECKPOINT_BYTES && !this.#busy) this.#checkpointInThread();
  }

  #checkpointInThread(): void {
    this.#busy = true;
    this.#worker ??= this.#startWorker();
    this.#worker.postMessage({ kind: 'checkpoint' } satisfies KeeperJob);
  }

  #startWorker(): Worker {
    const worker = startThread(this.file);
    worker.on('message', (reply: KeeperReply) => {
      this.#busy = false;
      if (reply.kind === 'failed') this.say(`a checkpoint failed: ${reply.message}`);
    });
    worker.on('error', (error) => {
      this.#busy = false;
      this.#worker = undefined;
      this.say(`the checkpoint thread ended: ${messageOf(error)}`);
    });
    worker.unref();
    return worker;
  }
}

const walBytes = (file: string): number => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;

export function startThread(file: string): Worker {
  return new Worker(new URL('./keeper-thread.js', import.meta.url), { workerData: { file } });
}

/** One long job in a thread that ends with it. */
export async function runInThread(
  file: string,
  job: KeeperJob,
  progress: (message: string) => void = () => undefined,
): Promise<unknown> {
  const worker = startThread(file);
  try {
    return await new Promise((resolve, reject) => {
      worker.on('error', reject);
      worker.on('message', (reply: KeeperReply) => {
        if (reply.kind === 'progress') progress(reply.message);
        else if (reply.kind === 'done') resolve(reply.result);
        else reject(new Error(reply.message));
      });
      worker.postMessage(job);
    });
  } finally {
    await worker.terminate();
  }
}

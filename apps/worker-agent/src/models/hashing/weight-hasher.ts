import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { packageRoot } from '#runtime/process-info.js';
import type { Logger } from '#runtime/logger.js';
import type { FileStamp } from '../file-facts.js';
import { MemoryWriter } from '../memory-writer.js';
import { type Begun, type HashMemory, type Hashed, recallHashes, rememberHashes } from './hash-memory.js';
import type { HashAnswer, HashRequest } from './hash-worker.js';
import type { Sha256State } from './sha256.js';

export interface FileToHash extends FileStamp {
  readonly file: string;
}

export interface WeightHasherOptions {
  /** File in which results, and hashes that were begun, are remembered over a restart. */
  readonly memory?: string;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** Once for each file, as soon as its hash is known; at once for one that an earlier run hashed. */
  readonly onHashed: (file: string, hashed: Hashed) => void;
}

/**
 * Hashes weight files in the background, one after another, in a thread of the lowest priority, and rests on demand. A file that did not
 * change (path, size, time) is never hashed twice; one that was begun goes on where it was.
 */
export class WeightHasher {
  private readonly queue = new Map<string, FileToHash>();
  private readonly told = new Map<string, string>();
  private memory: HashMemory | undefined;
  private worker: Worker | undefined;
  private current:
    { readonly file: FileToHash; readonly startedMs: number; readonly before: number } | undefined;
  private state: Sha256State | undefined;
  private running: Promise<void> = Promise.resolve();
  private stopped = false;
  /** Shared with the thread: 1 while it is to rest. */
  private readonly paused = new Int32Array(new SharedArrayBuffer(4));
  private pausedAtMs: number | undefined;
  private restedMs = 0;

  private readonly saving = new MemoryWriter(
    () => this.save(),
    (error) =>
      this.options.log.warn({ err: error }, 'hashes could not be remembered; the next start hashes again'),
  );

  constructor(private readonly options: WeightHasherOptions) {}

  /** These are the files there are: new ones are hashed, those that are gone are forgotten. The smallest first. */
  want(files: readonly FileToHash[]): Promise<void> {
    this.running = this.running.then(async () => {
      if (this.stopped) return;
      this.memory ??=
        this.options.memory === undefined
          ? { hashed: new Map(), begun: new Map() }
          : await recallHashes(this.options.memory);
      const there = new Set(files.map(({ file }) => file));
      for (const map of [this.memory.hashed, this.memory.begun, this.told]) {
        for (const file of map.keys()) if (!there.has(file)) map.delete(file);
      }
      this.queue.clear();
      for (const one of [...files].sort((a, b) => a.bytes - b.bytes)) {
        const hashed = this.memory.hashed.get(one.file);
        if (hashed !== undefined && isSame(hashed, one)) this.tell(one.file, hashed);
        else if (this.current?.file.file !== one.file || !isSame(this.current.file, one))
          this.queue.set(one.file, one);
      }
      this.next();
    });
    return this.running;
  }

  /** Rests after the piece that is being read, and goes on from there. */
  pause(rest: boolean): void {
    if (rest === (this.pausedAtMs !== undefined)) return;
    const nowMs = performance.now();
    if (this.pausedAtMs !== undefined) this.restedMs += nowMs - this.pausedAtMs;
    this.pausedAtMs = rest ? nowMs : undefined;
    Atomics.store(this.paused, 0, rest ? 1 : 0);
    if (!rest) Atomics.notify(this.paused, 0);
  }

  /** What passed on files, rests left out. */
  private workedMs(): number {
    const nowMs = performance.now();
    return nowMs - this.restedMs - (this.pausedAtMs === undefined ? 0 : nowMs - this.pausedAtMs);
  }

  hashOf(file: string): Hashed | undefined {
    return this.memory?.hashed.get(file);
  }

  /** What was begun is written down for the next run. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.running;
    const { worker } = this;
    this.worker = undefined;
    worker?.removeAllListeners();
    await worker?.terminate();
    this.putAside();
    await this.saving.now();
  }

  private next(): void {
    if (this.stopped || this.current !== undefined || this.memory === undefined) return;
    const [file] = this.queue.values();
    if (file === undefined) {
      void this.worker?.terminate();
      this.worker = undefined;
      return;
    }
    this.queue.delete(file.file);
    const begun = this.memory.begun.get(file.file);
    const resumed = begun !== undefined && isSame(begun, file) ? begun : undefined;
    this.current = { file, startedMs: this.workedMs(), before: resumed?.seconds ?? 0 };
    this.state = resumed?.state;
    this.worker ??= this.start();
    this.worker.postMessage({
      file: file.file,
      bytes: file.bytes,
      modifiedMs: file.modifiedMs,
      ...(resumed === undefined ? {} : { state: resumed.state }),
    } satisfies HashRequest);
  }

  private start(): Worker {
    const worker = new Worker(workerScript(), { execArgv: [], workerData: this.paused.buffer });
    worker.unref();
    worker.on('message', (answer: HashAnswer) => this.hear(answer));
    worker.on('error', (error) => {
      this.options.log.warn(
        { err: error },
        'the thread that hashes weights failed; the next scan starts another',
      );
      this.worker = undefined;
      this.current = undefined;
    });
    return worker;
  }

  private hear(answer: HashAnswer): void {
    const { current } = this;
    if (current?.file.file !== answer.file) return;
    if (answer.kind === 'at') {
      this.state = answer.state;
      this.putAside();
      this.saving.changed();
      return;
    }
    const { file, startedMs, before } = current;
    this.current = undefined;
    this.state = undefined;
    this.memory?.begun.delete(file.file);
    if (answer.kind === 'done') {
      const hashed: Hashed = {
        bytes: file.bytes,
        modifiedMs: file.modifiedMs,
        sha256: answer.sha256,
        seconds: Math.round((before + (this.workedMs() - startedMs) / 1000) * 1000) / 1000,
      };
      this.memory?.hashed.set(file.file, hashed);
      this.tell(file.file, hashed);
      this.saving.changed();
    }
    this.next();
  }

  private tell(file: string, hashed: Hashed): void {
    if (this.told.get(file) === hashed.sha256) return;
    this.told.set(file, hashed.sha256);
    this.options.onHashed(file, hashed);
  }

  private putAside(): void {
    const { current, state, memory } = this;
    if (current === undefined || state === undefined || memory === undefined) return;
    const begun: Begun = {
      bytes: current.file.bytes,
      modifiedMs: current.file.modifiedMs,
      state,
      seconds: current.before + (this.workedMs() - current.startedMs) / 1000,
    };
    memory.begun.set(current.file.file, begun);
  }

  private async save(): Promise<void> {
    const { memory: file } = this.options;
    if (file !== undefined && this.memory !== undefined) await rememberHashes(file, this.memory);
  }
}

const isSame = (a: FileStamp, b: FileStamp): boolean => a.bytes === b.bytes && a.modifiedMs === b.modifiedMs;

/** A thread runs built code, also when this file runs from its source (tests). */
function workerScript(): string {
  const beside = fileURLToPath(new URL('./hash-worker.js', import.meta.url));
  return existsSync(beside)
    ? beside
    : join(packageRoot(), 'dist/apps/worker-agent/src/models/hashing/hash-worker.js');
}

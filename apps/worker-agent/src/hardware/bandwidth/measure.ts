import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { MIB } from '#domain/units.js';
import { packageRoot } from '#runtime/process-info.js';
import type { BandwidthSaid, BandwidthWork } from './bandwidth-worker.js';

/** Read rate of host memory, in units of 10^9 bytes a second. */
export interface MemoryBandwidth {
  readonly allGBps: number;
  readonly oneCoreGBps: number;
}

const LEAST_BYTES = 64 * MIB;
const FOR_MS = 400;
/** Filling and reading end long before; a thread that does not is given up. */
const DEADLINE_MS = 60_000;

/**
 * Bytes that are read, over all threads together: eight times the last cache, so that it cannot answer, and never more
 * than a quarter of what is free. Undefined when both cannot be had: then nothing is measured.
 */
export function bufferBytes(lastCacheBytes: number | undefined, availableBytes: number): number | undefined {
  const wanted = Math.max(LEAST_BYTES, 8 * (lastCacheBytes ?? 32 * MIB));
  return wanted <= availableBytes / 4 ? wanted : undefined;
}

/**
 * Reads with one thread, then with one for each core at once, in threads of the lowest priority.
 * @param bytes from `bufferBytes`; all cores share it, so that it is not a multiple of it that is held.
 */
export async function measureBandwidth(cores: number, bytes: number): Promise<MemoryBandwidth> {
  const one = await together(1, bytes);
  const all = cores > 1 ? await together(cores, bytes) : one;
  const rounded = (rate: number) => Math.round(rate / 1e7) / 100;
  return { oneCoreGBps: rounded(one), allGBps: rounded(Math.max(one, all)) };
}

/** @returns bytes per second over all threads. */
async function together(threads: number, bytes: number): Promise<number> {
  const workerData: BandwidthWork = { bytes: Math.ceil(bytes / threads), milliseconds: FOR_MS };
  const workers = Array.from(
    { length: threads },
    () => new Worker(workerScript(), { workerData, execArgv: [] }),
  );
  for (const worker of workers) worker.unref();
  try {
    await Promise.all(workers.map((worker) => said(worker, 'filled')));
    const rates = workers.map((worker) => said(worker, 'read'));
    for (const worker of workers) worker.postMessage('begin');
    return (await Promise.all(rates)).reduce((sum, answer) => sum + (answer.bytesPerSecond ?? 0), 0);
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

function said(worker: Worker, kind: BandwidthSaid['kind']): Promise<{ readonly bytesPerSecond?: number }> {
  return new Promise((resolve, reject) => {
    const deadline = setTimeout(
      () => reject(new Error(`a thread did not say "${kind}" within ${DEADLINE_MS / 1000} s`)),
      DEADLINE_MS,
    ).unref();
    worker.on('message', (answer: BandwidthSaid) => {
      if (answer.kind !== kind) return;
      clearTimeout(deadline);
      resolve(answer.kind === 'read' ? answer : {});
    });
    worker.once('error', reject);
  });
}

/** A thread runs built code, also when this file runs from its source (tests). */
function workerScript(): string {
  const beside = fileURLToPath(new URL('./bandwidth-worker.js', import.meta.url));
  return existsSync(beside)
    ? beside
    : join(packageRoot(), 'dist/apps/worker-agent/src/hardware/bandwidth/bandwidth-worker.js');
}

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { MemoryBandwidth } from '#domain/events/worker-events.js';
import { MIB } from '#domain/units.js';
import { packageRoot } from '#runtime/process-info.js';
import type { BandwidthSaid, BandwidthWork } from './bandwidth-worker.js';

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

/** More counts of cores than this are not measured: those between two are taken from the line between them. */
const MOST_COUNTS = 12;

/** Each of so many is measured: here a curve bends. */
const SINGLE_COUNTS = 6;

/** Counts of cores to measure, from 1 to all: each of the first, then in growing steps. */
export function coreCounts(cores: number): readonly number[] {
  if (cores <= MOST_COUNTS) return Array.from({ length: cores }, (_, i) => i + 1);
  const steps = MOST_COUNTS - SINGLE_COUNTS;
  const growth = (cores / SINGLE_COUNTS) ** (1 / steps);
  return [
    ...Array.from({ length: SINGLE_COUNTS }, (_, i) => i + 1),
    ...Array.from({ length: steps }, (_, i) => Math.round(SINGLE_COUNTS * growth ** (i + 1))),
  ];
}

/** The rate at every count, never falling, from those that were measured. */
export function curveOf(counts: readonly number[], rates: readonly number[]): readonly number[] {
  const curve: number[] = [];
  counts.forEach((count, i) => {
    const before = curve.at(-1) ?? 0;
    const from = curve.length;
    const rate = Math.max(before, rates[i] ?? 0);
    for (let at = from + 1; at <= count; at++)
      curve.push(from === 0 ? rate : before + ((rate - before) * (at - from)) / (count - from));
  });
  return curve;
}

const inGBps = (bytesPerSecond: number): number => Math.round(bytesPerSecond / 1e7) / 100;

/**
 * Reads with one thread, then with more, up to one for each core, in threads of the lowest priority.
 * @param bytes from `bufferBytes`; all cores share it, so that it is not a multiple of it that is held.
 * @throws where there was no time to read in: then nothing was measured.
 */
export async function measureBandwidth(cores: number, bytes: number): Promise<MemoryBandwidth> {
  const counts = coreCounts(cores);
  const rates: number[] = [];
  for (const count of counts) rates.push(await together(count, bytes));
  const byCoresGBps = curveOf(counts, rates).map(inGBps);
  // At the lowest priority others may leave it nothing; a rate of 0 would be believed, and every plan in RAM take for ever.
  if (byCoresGBps.includes(0))
    throw new Error('other programs left its threads no processor time; it is tried again in an hour');
  return { oneCoreGBps: byCoresGBps[0] ?? 0, allGBps: byCoresGBps.at(-1) ?? 0, byCoresGBps };
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

import { performance } from 'node:perf_hooks';

/** Each is run so often; the least of its times is close to what the processor needs when nothing else runs. */
const BEST_OF = 5;

/** Something to time, and how to make what it is given, which is not timed. */
export interface Timed<T> {
  readonly make: () => T;
  readonly run: (given: T) => unknown;
}

/** Prints percentiles over the runs: of the first time of each (wall), and of the best of five. */
export function printTimes<T>(label: string, list: readonly Timed<T>[]): void {
  const first: number[] = [];
  const best: number[] = [];
  let cpuMicroseconds = 0;
  for (const { make, run } of list) {
    let least = Infinity;
    for (let i = 0; i < BEST_OF; i++) {
      const given = make();
      const cpuFrom = process.cpuUsage();
      const from = performance.now();
      run(given);
      const took = performance.now() - from;
      const cpu = process.cpuUsage(cpuFrom);
      cpuMicroseconds += cpu.user + cpu.system;
      if (i === 0) first.push(took);
      least = Math.min(least, took);
    }
    best.push(least);
  }
  const meanCpu = (cpuMicroseconds / 1000 / list.length / BEST_OF).toFixed(3);
  console.log(
    `${label.padEnd(40)} wall p50 ${p(first, 0.5)} p99 ${p(first, 0.99)} ms   best of ${BEST_OF} p50 ${p(best, 0.5)} p99 ${p(best, 0.99)} ms   mean CPU ${meanCpu} ms   ${list.length} runs`,
  );
}

function p(times: readonly number[], share: number): string {
  const sorted = [...times].sort((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(3);
}

/** Decisions between two looks at the heap: few enough that the young generation is seldom collected between them. */
const BATCH = 4;

/** Prints what a run allocates and what stays of it; `--expose-gc` makes it possible. */
export function printMemory<T>(label: string, list: readonly Timed<T>[]): void {
  const { gc } = globalThis;
  if (!gc) {
    console.log('  memory: not measured; run with node --expose-gc');
    return;
  }
  const used = (): number => process.memoryUsage().heapUsed;
  const allocated: number[] = [];
  gc();
  const before = used();
  for (let i = 0; i + BATCH <= list.length; i += BATCH) {
    const batch = list.slice(i, i + BATCH).map(({ make, run }) => ({ given: make(), run }));
    const from = used();
    for (const { given, run } of batch) run(given);
    const grown = used() - from;
    // A collection in between makes it less, never more.
    if (grown > 0) allocated.push(grown / BATCH / 1024);
  }
  gc();
  const kept = (used() - before) / list.length / 1024;
  console.log(
    `  ${label}: allocates p50 ${p(allocated, 0.5)} KiB, p99 ${p(allocated, 0.99)} KiB; ${kept.toFixed(2)} KiB stay for each`,
  );
}

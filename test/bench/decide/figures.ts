import { performance, PerformanceObserver } from 'node:perf_hooks';

/** Every list is gone through so often: the first pass is thrown away, since the code is compiled meanwhile. */
const PASSES = 5;

/** Something to time, and how to make what it is given, which is not timed. */
export interface Timed<T> {
  readonly make: () => T;
  readonly run: (given: T) => unknown;
}

export interface Times {
  /** Every run of every pass, as the clock saw it: with the collector, and with whatever else the machine did. */
  readonly wallMs: readonly number[];
  /** The same as the system counted it for this process: with the collector, and without other processes. */
  readonly cpuMs: readonly number[];
  /** Share of the time of all runs that the collector held them up. */
  readonly gcShare: number;
}

/** Times every run of some passes over a list, one after another as a server meets them. */
export async function timesOf<T>(list: readonly Timed<T>[]): Promise<Times> {
  for (const { make, run } of list) run(make());
  const pauses: { readonly startTime: number; readonly duration: number }[] = [];
  const observer = new PerformanceObserver((entries) => pauses.push(...entries.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  const wallMs: number[] = [];
  const cpuMs: number[] = [];
  const spans: (readonly [number, number])[] = [];
  for (let pass = 1; pass < PASSES; pass++) {
    for (const { make, run } of list) {
      const given = make();
      const cpuFrom = process.cpuUsage();
      const from = performance.now();
      run(given);
      const to = performance.now();
      const { user, system } = process.cpuUsage(cpuFrom);
      wallMs.push(to - from);
      cpuMs.push((user + system) / 1000);
      spans.push([from, to]);
    }
  }
  // What the collector did is told in a later turn.
  await new Promise((resolve) => setTimeout(resolve, 50));
  observer.disconnect();
  const during = pauses.filter(({ startTime: at }) => spans.some(([from, to]) => at >= from && at < to));
  const gcShare = sum(during.map((p) => p.duration)) / sum(wallMs);
  return { wallMs, cpuMs, gcShare };
}

export const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

export function percentile(numbers: readonly number[], share: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

export interface Memory {
  /** For each run: what it allocates. */
  readonly allocatedKiB: readonly number[];
  /** What stays of a run when everything was collected. */
  readonly keptKiB: number;
}

/** Decisions between two looks at the heap: few enough that the young generation is seldom collected between them. */
const BATCH = 8;

/** What a run allocates and what stays of it; undefined without `--expose-gc`, which makes it possible. */
export function memoryOf<T>(list: readonly Timed<T>[]): Memory | undefined {
  const { gc } = globalThis;
  if (!gc) return undefined;
  const used = (): number => process.memoryUsage().heapUsed;
  const allocatedKiB: number[] = [];
  gc();
  const before = used();
  for (let i = 0; i + BATCH <= list.length; i += BATCH) {
    const batch = list.slice(i, i + BATCH).map(({ make, run }) => ({ given: make(), run }));
    const from = used();
    for (const { given, run } of batch) run(given);
    const grown = used() - from;
    // A collection in between makes it less, never more.
    if (grown > 0) allocatedKiB.push(grown / BATCH / 1024);
  }
  gc();
  return { allocatedKiB, keptKiB: (used() - before) / list.length / 1024 };
}

/** What a stretch of time came to, really or simulated. Latencies are of served calls: never read one without `refused`. */
export interface Figures {
  readonly calls: number;
  readonly served: number;
  readonly refused: number;
  /** Arrival to the end of the output. */
  readonly toOutputSeconds: Spread;
  /** Arrival to the first byte. */
  readonly toFirstByteSeconds: Spread;
  readonly longestWaitSeconds: number;
  readonly loads: number;
  readonly failedLoads: number;
  readonly loadSeconds: number;
  /** The same loads at what a load of each model usually takes: as the bound counts them. */
  readonly usualLoadSeconds: number;
  readonly evictions: number;
}

export interface Spread {
  readonly mean: number;
  readonly p50: number;
  readonly p99: number;
}

/** Unsorted values; by nearest rank. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (q: number): number =>
    sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))] ?? 0;
  const mean = sorted.length === 0 ? 0 : sorted.reduce((a, b) => a + b, 0) / sorted.length;
  return { mean, p50: at(0.5), p99: at(0.99) };
}

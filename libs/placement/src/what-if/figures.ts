import type { WhatIfSpread as Spread } from '#domain/wire/what-if.js';

export type { WhatIfFigures as Figures } from '#domain/wire/what-if.js';

/** Unsorted values; by nearest rank. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (q: number): number =>
    sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))] ?? 0;
  const mean = sorted.length === 0 ? 0 : sorted.reduce((a, b) => a + b, 0) / sorted.length;
  return { mean, p50: at(0.5), p99: at(0.99) };
}

import { loadSecondsFrom, type Scenario } from '#placement/simulate/model.js';
import type { SimulationResult } from '#placement/simulate/simulate.js';
import { defaultSettings } from '#placement/setting-levels.js';
import { overdueRule, type OverdueRule } from './overdue.js';
import { waitsOf, type Waits } from './waits.js';

/** What one run of one policy gave. Latencies are over the calls that were served: never read one without `refused`. */
export interface Metrics {
  readonly calls: number;
  readonly refused: number;
  /** Arrival to the end of the output. */
  readonly meanSeconds: number;
  readonly p50Seconds: number;
  readonly p99Seconds: number;
  /** Arrival to the first byte. */
  readonly firstByteMeanSeconds: number;
  readonly firstByteP99Seconds: number;
  readonly loads: number;
  readonly failedLoads: number;
  readonly bytesLoaded: number;
  /** Without the luck of single loads, as the bound counts them. */
  readonly loadSeconds: number;
  /** Arrival to the beginning of the prompt. */
  readonly longestWaitSeconds: number;
  readonly waits: Waits;
  readonly overdue: OverdueRule;
  /** Jain's index over the models' mean slowdown (time to output ÷ time alone): 1 when all fare alike. */
  readonly fairness: number;
  readonly decisions?: number;
  readonly decisionMeanMs?: number;
  readonly decisionP99Ms?: number;
}

export function metricsOf(scenario: Scenario, result: SimulationResult): Metrics {
  const served = result.calls.filter((c) => c.refused === undefined);
  const total = served.map(({ call, endMs = 0 }) => (endMs - call.atMs) / 1000).sort((a, b) => a - b);
  const first = served
    .map(({ call, firstByteMs = 0 }) => (firstByteMs - call.atMs) / 1000)
    .sort((a, b) => a - b);
  const slowdowns = new Map<number, number[]>();
  let longest = 0;
  for (const { call, startMs = 0, endMs = 0 } of served) {
    longest = Math.max(longest, (startMs - call.atMs) / 1000);
    const list = slowdowns.get(call.model) ?? [];
    list.push((endMs - call.atMs) / Math.max(1, endMs - startMs));
    slowdowns.set(call.model, list);
  }
  return {
    calls: result.calls.length,
    refused: result.calls.length - served.length,
    meanSeconds: mean(total),
    p50Seconds: quantile(total, 0.5),
    p99Seconds: quantile(total, 0.99),
    firstByteMeanSeconds: mean(first),
    firstByteP99Seconds: quantile(first, 0.99),
    loads: result.loads.length,
    failedLoads: result.loads.filter((l) => l.failed).length,
    bytesLoaded: result.loads.reduce((sum, l) => sum + l.fileBytes, 0),
    loadSeconds: result.loads.reduce(
      (sum, l) => sum + loadSecondsFrom(scenario.load, l.from, l.fileBytes),
      0,
    ),
    longestWaitSeconds: longest,
    waits: waitsOf(result),
    overdue: overdueRule(scenario, result, defaultSettings.overdueAfterSeconds),
    fairness: jain([...slowdowns.values()].map(mean)),
  };
}

export const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((a, b) => a + b, 0) / values.length;

/** Of sorted values, by nearest rank. */
export const quantile = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))] ?? 0;

export function jain(values: readonly number[]): number {
  const sum = values.reduce((a, b) => a + b, 0);
  const squares = values.reduce((a, b) => a + b * b, 0);
  return squares === 0 ? 1 : (sum * sum) / (values.length * squares);
}

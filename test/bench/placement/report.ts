import { HARDWARE } from './hardware.js';
import { mean } from './metrics.js';
import type { Run } from './runs.js';

/** Runs of one policy on one workload and hardware, over the seeds. */
export interface Row {
  readonly workload: string;
  readonly hardware: string;
  readonly policy: string;
  readonly runs: readonly Run[];
}

export function rowsOf(runs: readonly Run[]): readonly Row[] {
  const rows = new Map<string, { workload: string; hardware: string; policy: string; runs: Run[] }>();
  for (const run of runs) {
    const key = `${run.workload}|${run.hardware}|${run.policy}`;
    const row = rows.get(key) ?? {
      workload: run.workload,
      hardware: HARDWARE[run.hardware].name,
      policy: run.policy,
      runs: [],
    };
    row.runs.push(run);
    rows.set(key, row);
  }
  return [...rows.values()];
}

const over = (row: Row, of: (run: Run) => number): number => mean(row.runs.map(of));

/** Load seconds ÷ bound, over all seeds together. */
export const ratioOf = (row: Row): number =>
  over(row, (r) => r.metrics.loadSeconds) / over(row, (r) => r.boundSeconds);

export const meanSecondsOf = (row: Row): number => over(row, (r) => r.metrics.meanSeconds);

type Column = readonly [title: string, of: (row: Row) => string];

const seconds =
  (of: (run: Run) => number) =>
  (row: Row): string =>
    over(row, of).toFixed(1);
const most =
  (of: (run: Run) => number) =>
  (row: Row): string =>
    Math.max(...row.runs.map(of)).toFixed(0);

const COLUMNS: readonly Column[] = [
  ['policy', (row) => row.policy],
  ['refused', (row) => over(row, (r) => r.metrics.refused).toFixed(0)],
  ['to output, mean s', seconds((r) => r.metrics.meanSeconds)],
  ['p50', seconds((r) => r.metrics.p50Seconds)],
  ['p99', seconds((r) => r.metrics.p99Seconds)],
  ['first byte, mean s', seconds((r) => r.metrics.firstByteMeanSeconds)],
  ['p99', seconds((r) => r.metrics.firstByteP99Seconds)],
  ['reloads', (row) => over(row, (r) => r.metrics.loads).toFixed(0)],
  ['failed', (row) => over(row, (r) => r.metrics.failedLoads).toFixed(0)],
  ['TB loaded', (row) => (over(row, (r) => r.metrics.bytesLoaded) / 1e12).toFixed(1)],
  ['load s', (row) => over(row, (r) => r.metrics.loadSeconds).toFixed(0)],
  ['÷ bound', (row) => ratioOf(row).toFixed(2)],
  ['longest wait s', most((r) => r.metrics.longestWaitSeconds)],
  ['past overdue', (row) => row.runs.reduce((sum, r) => sum + r.metrics.overdue.overtakes, 0).toFixed(0)],
  ['fairness', (row) => over(row, (r) => r.metrics.fairness).toFixed(2)],
  [
    'decision ms, mean / p99',
    (row) =>
      row.runs[0]?.metrics.decisions === undefined
        ? ''
        : `${over(row, (r) => r.metrics.decisionMeanMs ?? 0).toFixed(2)} / ${over(row, (r) => r.metrics.decisionP99Ms ?? 0).toFixed(2)}`,
  ],
];

const WAITS: readonly Column[] = [
  ['policy', (row) => row.policy],
  ['until its load begins, s', (row) => over(row, (r) => r.metrics.waits.untilLoadSeconds).toFixed(2)],
  ['load', (row) => over(row, (r) => r.metrics.waits.loadSeconds).toFixed(2)],
  ['slot', (row) => over(row, (r) => r.metrics.waits.slotSeconds).toFixed(2)],
  ['serving', (row) => over(row, (r) => r.metrics.waits.servingSeconds).toFixed(2)],
  ['to output', (row) => meanSecondsOf(row).toFixed(2)],
];

/** Where the time to output goes, for the runs of one workload and hardware. */
export const waitsTable = (runs: readonly Run[]): string => [...table(WAITS, rowsOf(runs)), ''].join('\n');

const table = (columns: readonly Column[], rows: readonly Row[]): readonly string[] => [
  `| ${columns.map(([name]) => name).join(' | ')} |`,
  `| ${columns.map((_, i) => (i === 0 ? '---' : '---:')).join(' | ')} |`,
  ...rows.map((row) => `| ${columns.map(([, of]) => of(row)).join(' | ')} |`),
];

/** A section for each workload and hardware, with its bounds. Latencies stand beside the count of refused calls. */
export function markdown(runs: readonly Run[]): string {
  const sections = new Map<string, Row[]>();
  for (const row of rowsOf(runs)) {
    const key = `${row.workload} on ${row.hardware}`;
    const list = sections.get(key) ?? [];
    list.push(row);
    sections.set(key, list);
  }
  return [...sections].map(([title, rows]) => section(title, rows)).join('\n');
}

function section(title: string, rows: readonly Row[]): string {
  const [first] = rows;
  if (!first) return '';
  const calls = over(first, (r) => r.metrics.calls).toFixed(0);
  const bound = over(first, (r) => r.boundSeconds).toFixed(0);
  const delayed = first.runs.every((r) => r.delayedBoundSeconds !== undefined)
    ? `; ${over(first, (r) => r.delayedBoundSeconds ?? 0).toFixed(0)} s if calls may wait 60 s`
    : '';
  const seeds = first.runs.length === 1 ? '1 seed' : `${first.runs.length} seeds`;
  return [
    `### ${title}`,
    '',
    `${calls} calls, ${seeds}, means over them. Bound: ${bound} s of loading${delayed}.`,
    '',
    ...table(COLUMNS, rows),
    '',
  ].join('\n');
}

import { readdirSync, readFileSync } from 'node:fs';

/** Processor time of a process since its start, in ms: of all its threads, as the scheduler counts it. */
export function cpuMs(pid: number | undefined): number {
  if (pid === undefined) return 0;
  let ns = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  }
  return ns / 1e6;
}

export function residentBytes(pid: number): number {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) * 1024;
}

export const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.floor((sorted.length - 1) * share)] ?? NaN;

export const ascending = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);

export const load1 = (): string => readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 1).join('');

import { readdirSync } from 'node:fs';
import { listProcesses, parseStat } from '../hardware/processes.js';
import { readText } from '../hardware/read-text.js';

/** What the system says of processes that answer nothing: whether they are at work all the same. */
export interface Work {
  /** Processor time so far of each process, in clock ticks. */
  readonly ticks: ReadonlyMap<number, number>;
  /** A thread of them runs, waits for a processor or for the disk at this moment. */
  readonly busy: boolean;
}

/** A hundredth of one core: timers of a runtime that waits for nothing take less. */
const TICKS_PER_SECOND = 1;

/** @returns undefined where nothing can be seen of any of them. */
export function workOf(pids: readonly number[]): Work | undefined {
  const there = listProcesses(readText, () => pids);
  if (there.length === 0) return undefined;
  return {
    ticks: new Map(there.map(({ pid, cpuTicks }) => [pid, cpuTicks])),
    busy: there.some(({ pid }) => threadsOf(pid).some((thread) => isBusy(pid, thread))),
  };
}

function threadsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    // It ended between the looks.
    return [];
  }
}

function isBusy(pid: number, thread: string): boolean {
  const state = parseStat(readText(`/proc/${pid}/task/${thread}/stat`) ?? '')?.state;
  return state === 'R' || state === 'D';
}

/** Whether they have worked between two looks that are so many seconds apart. */
export function hasWorked(before: Work, now: Work, seconds: number): boolean {
  let ticks = 0;
  for (const [pid, have] of now.ticks) ticks += have - (before.ticks.get(pid) ?? 0);
  return now.busy || ticks > seconds * TICKS_PER_SECOND;
}

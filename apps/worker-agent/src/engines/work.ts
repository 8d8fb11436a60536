import { readdirSync, readFileSync } from 'node:fs';
import { parseStat } from '../hardware/processes.js';

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
  const ticks = new Map<number, number>();
  let busy = false;
  for (const pid of pids) {
    try {
      const entry = parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
      if (entry === undefined) continue;
      ticks.set(pid, entry.cpuTicks);
      busy ||= readdirSync(`/proc/${pid}/task`).some((thread) => isBusy(pid, thread));
    } catch {
      // It ended between the looks, or there is no /proc.
    }
  }
  return ticks.size === 0 ? undefined : { ticks, busy };
}

function isBusy(pid: number, thread: string): boolean {
  const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
  const state = stat.slice(stat.lastIndexOf(')') + 2)[0];
  return state === 'R' || state === 'D';
}

/** Whether they have worked between two looks that are so many seconds apart. */
export function hasWorked(before: Work, now: Work, seconds: number): boolean {
  let ticks = 0;
  for (const [pid, have] of now.ticks) ticks += have - (before.ticks.get(pid) ?? 0);
  return now.busy || ticks > seconds * TICKS_PER_SECOND;
}

import { readdirSync, readFileSync } from 'node:fs';
import { pidStartTicks } from '#runtime/process-info.js';

/**
 * The mark that an engine carries in its environment, and that everything inherits which it forks. A process group can
 * be left and a parent can end; the environment that a process began with stays, so whoever holds memory for a resident
 * is found, also when no state file tells of it.
 */
export const ENGINE_MARK = 'BERTH_ENGINE_MARK';

/** @param folder where the engines' files lie: tells the engines of one home from those of another */
export const engineMark = (folder: string, residentId: string): string => `${folder}#${residentId}`;

export interface MarkedProcess {
  readonly pid: number;
  readonly startTicks: number;
  readonly residentId: string;
}

/** Every process of this home's engines; none where there is no /proc. Of other users' processes nothing is seen. */
export function markedProcesses(folder: string): readonly MarkedProcess[] {
  const before = `${ENGINE_MARK}=${engineMark(folder, '')}`;
  return pids().flatMap((pid) => {
    const residentId = environment(pid)
      .split('\0')
      .find((entry) => entry.startsWith(before))
      ?.slice(before.length);
    const startTicks = residentId === undefined ? undefined : pidStartTicks(pid);
    return residentId === undefined || startTicks === undefined ? [] : [{ pid, startTicks, residentId }];
  });
}

/** Kills what is left of an engine. @returns how many processes there were */
export function killFamily(folder: string, residentId: string): number {
  const left = markedProcesses(folder).filter((process) => process.residentId === residentId);
  for (const { pid } of left) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
  return left.length;
}

function pids(): readonly number[] {
  try {
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  } catch {
    return [];
  }
}

function environment(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    // It ended, or belongs to another user.
    return '';
  }
}

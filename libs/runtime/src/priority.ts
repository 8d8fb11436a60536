import { constants, setPriority } from 'node:os';

/** For what nobody waits for, and for what somebody may look at. */
export const LOWEST = constants.priority.PRIORITY_LOW;
export const LOWER = 10;

/** Below every call. On Linux a priority is the thread's; where it is the whole process's, it is left as it is. */
export function lowerThread(nice: number): void {
  if (process.platform === 'linux') lowerProcess(0, nice);
}

export function lowerProcess(pid: number, nice: number): void {
  try {
    setPriority(pid, nice);
  } catch {
    // Not allowed here, or it is gone already: it runs at the priority that it has.
  }
}

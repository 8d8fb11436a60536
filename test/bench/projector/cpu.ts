import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

const statOf = (pid: number | string): string[] => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command stands in parentheses and may hold spaces.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
};

/** Processor time that a process and the children it has waited for have used (Linux). */
export function cpuSecondsOf(pid: number): number {
  const fields = statOf(pid);
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index] ?? 0), 0) / TICKS_PER_SECOND;
}

/** Pids of every process below those that this one has started. */
export function descendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const parent = Number(statOf(pid)[1] ?? -1);
    children.set(parent, [...(children.get(parent) ?? []), Number(pid)]);
  }
  const found: number[] = [];
  const visit = (pid: number): void => {
    for (const child of children.get(pid) ?? []) {
      found.push(child);
      visit(child);
    }
  };
  visit(root);
  return found;
}

/** The processes of Postgres below this one. */
export const postgresProcesses = (): number[] =>
  descendants(process.pid).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('postgres');
    } catch {
      return false;
    }
  });

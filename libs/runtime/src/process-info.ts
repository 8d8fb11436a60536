import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Start time of a process in clock ticks since boot; undefined when it is gone or the system has no /proc. */
export function pidStartTicks(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name is in parentheses and may hold spaces; the fields after it are counted from the state (3rd).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    return Number(fields[19]);
  } catch {
    // Gone, or no /proc: the caller treats both as unknown.
    return undefined;
  }
}

/**
 * Whether the very process is still there: same pid, same start. Where there is no /proc the pid alone must do.
 */
export function isAlive(pid: number, startTicks?: number): boolean {
  if (existsSync('/proc/self/stat')) {
    const now = pidStartTicks(pid);
    return now !== undefined && (startTicks === undefined || now === startTicks);
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Differs after a reboot: a pid recorded under another boot says nothing. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}

/** The folder that holds package.json, from the sources as from `dist`. */
export function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    if (existsSync(join(folder, 'package.json')) && existsSync(join(folder, 'nest-cli.json'))) return folder;
    const parent = dirname(folder);
    if (parent === folder) throw new Error('The folder of Berth could not be found above its own code.');
    folder = parent;
  }
}

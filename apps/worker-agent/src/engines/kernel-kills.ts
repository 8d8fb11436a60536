import { readFileSync } from 'node:fs';

/** Processes that the kernel has killed since it started because memory ran out; undefined where it does not say. */
export function kernelKills(): number | undefined {
  try {
    const count = /^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'utf8'))?.[1];
    return count === undefined ? undefined : Number(count);
  } catch {
    return undefined;
  }
}

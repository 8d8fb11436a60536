import type { ReadText } from './read-text.js';
import { readText } from './read-text.js';

/** Time that processors have worked so far, in clock ticks. */
export interface CpuTicks {
  readonly busy: number;
  readonly total: number;
  /** How many processors there are in it. */
  readonly cpus: number;
}

/** The first line of /proc/stat; undefined where there is none. Waiting for a disk is no work. */
export function readCpuTicks(read: ReadText = readText): CpuTicks | undefined {
  const text = read('/proc/stat') ?? '';
  const fields = /^cpu +([\d ]+)$/m.exec(text)?.[1]?.split(' ').map(Number);
  if (fields === undefined || fields.length < 5) return undefined;
  // Guests are in user and nice already.
  const total = fields.slice(0, 8).reduce((sum, n) => sum + n, 0);
  const idle = (fields[3] ?? 0) + (fields[4] ?? 0);
  return { busy: total - idle, total, cpus: [...text.matchAll(/^cpu\d+ /gm)].length };
}

/**
 * Cores' worth of work between two readings; of all, and of what is not ours.
 * @param ourTicks what our processes worked between them.
 */
export function busyCores(
  before: CpuTicks,
  now: CpuTicks,
  ourTicks: number,
): { readonly all: number; readonly foreign: number; readonly percent: number } | undefined {
  const total = now.total - before.total;
  if (total <= 0 || now.cpus === 0) return undefined;
  const perCore = total / now.cpus;
  const all = Math.max(0, now.busy - before.busy) / perCore;
  return { all, foreign: Math.max(0, all - ourTicks / perCore), percent: (all / now.cpus) * 100 };
}

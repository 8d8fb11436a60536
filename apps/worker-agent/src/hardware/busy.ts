import type { TicksByCpu } from './busy-cores.js';

/** Time that processors have worked so far, in clock ticks. */
export interface CpuTicks {
  readonly busy: number;
  readonly total: number;
  /** How many processors there are in it. */
  readonly cpus: number;
}

/** Of all processors together. @returns undefined where none is told of */
export function sumOfTicks(byCpu: TicksByCpu): CpuTicks | undefined {
  if (byCpu.size === 0) return undefined;
  let busy = 0;
  let total = 0;
  for (const ticks of byCpu.values()) {
    busy += ticks.busy;
    total += ticks.total;
  }
  return { busy, total, cpus: byCpu.size };
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

import type { WorkerState } from '#domain/worker/state.js';
import type { Logger } from '#runtime/logger.js';
import { scheduleBandwidth } from '../hardware/bandwidth/schedule.js';
import { readMemory } from '../hardware/memory.js';
import type { FactWriter } from './facts.js';

/** Measures the rate of memory in the background; a better one is told with the capacity that the log knows. */
export function watchBandwidth(
  state: () => WorkerState,
  facts: FactWriter,
  log: Logger,
): { stop(): Promise<void> } {
  return scheduleBandwidth({
    cores: () => state().physicalCores,
    lastCacheBytes: () => state().lastCacheBytes,
    availableBytes: () => readMemory().availableBytes,
    best: () => state().memoryBandwidth,
    onBetter: async (memoryBandwidth) => {
      const { devices, ramBytes, swapBytes, physicalCores, cpuTopology, lastCacheBytes, drives } = state();
      if (ramBytes === undefined) return;
      await facts.ofItself({
        type: 'CapacityMeasured',
        data: {
          devices,
          ramBytes,
          swapBytes: swapBytes ?? 0,
          physicalCores,
          ...(cpuTopology === undefined ? {} : { cpuTopology }),
          ...(lastCacheBytes === undefined ? {} : { lastCacheBytes }),
          drives: drives ?? [],
          memoryBandwidth,
        },
      });
    },
    log,
  });
}

import { availableParallelism } from 'node:os';
import type { CpuReading } from './cpu.js';
import type { MemoryReading } from './memory-reading.js';

/**
 * Machines without /proc (macOS, Windows, BSD), as far as `systeminformation` knows them. What Node itself says there is
 * not enough: its free memory leaves out what the system gives back at once, and its processors are threads, not cores.
 * On Linux the files of the kernel say more (affinity, control groups, siblings), and this is not loaded at all.
 */
export interface SystemInformation {
  cpu(): Promise<{
    readonly cores: number;
    readonly physicalCores: number;
    readonly cache: { readonly l2: number | string; readonly l3: number | string };
  }>;
  mem(): Promise<{
    readonly total: number;
    readonly available: number;
    readonly swaptotal: number;
    readonly swapused: number;
  }>;
}

const EVERY_MS = 1000;

let newest: MemoryReading | undefined;

/** The newest reading of such a machine; undefined on Linux, and before the first. */
export const memoryElsewhere = (): MemoryReading | undefined => newest;

/** Cores and cache; undefined when the system does not tell the cores. */
export async function cpuElsewhere(system: SystemInformation): Promise<CpuReading | undefined> {
  const { cores, physicalCores, cache } = await system.cpu();
  const threads = cores > 0 ? cores : availableParallelism();
  if (!(physicalCores > 0)) return undefined;
  const perCore = Math.max(1, Math.round(threads / physicalCores));
  const lastCacheBytes = [cache.l3, cache.l2].map(Number).find((bytes) => bytes > 0);
  return {
    physicalCores,
    topology: Array.from({ length: threads }, (_, cpu) => ({
      cpu,
      core: Math.floor(cpu / perCore),
      node: 0,
    })),
    ...(lastCacheBytes === undefined ? {} : { lastCacheBytes }),
  };
}

export function memoryOf(said: Awaited<ReturnType<SystemInformation['mem']>>): MemoryReading | undefined {
  const { total, available, swaptotal, swapused } = said;
  if (!(total > 0) || !(available >= 0)) return undefined;
  return {
    totalBytes: total,
    usedBytes: Math.max(0, total - available),
    availableBytes: Math.min(total, available),
    swapBytes: Math.max(0, swaptotal || 0),
    swapUsedBytes: Math.max(0, swapused || 0),
  };
}

/** Reads memory once a second from now on. Resolves after the first reading, with the processors. */
export async function watchElsewhere(
  platform: NodeJS.Platform = process.platform,
  load: () => Promise<SystemInformation> = () => import('systeminformation'),
  everyMs = EVERY_MS,
): Promise<{ readonly cpu?: CpuReading; stop(): void }> {
  if (platform === 'linux') return { stop: () => undefined };
  const system = await load();
  const look = async (): Promise<void> => {
    // A reading that fails leaves the one before.
    newest = (await system.mem().then(memoryOf, () => undefined)) ?? newest;
  };
  let looking = look();
  await looking;
  const timer = setInterval(() => {
    looking = looking.then(look);
  }, everyMs).unref();
  const cpu = await cpuElsewhere(system).catch(() => undefined);
  return {
    ...(cpu === undefined ? {} : { cpu }),
    stop: () => {
      clearInterval(timer);
      newest = undefined;
    },
  };
}

import { availableParallelism, cpus } from 'node:os';
import { readText, type ReadText } from './memory.js';

export interface CpuReading {
  readonly physicalCores: number;
  readonly topology: readonly { readonly cpu: number; readonly core: number; readonly node: number }[];
}

/**
 * Physical cores that this process may use: hyperthread siblings count once; affinity (cpuset, taskset) and the
 * cgroup's CPU quota bound it.
 */
export function readCpu(read: ReadText = readText): CpuReading {
  const allowed = parseCpuList(
    /^Cpus_allowed_list:\s*(\S+)$/m.exec(read('/proc/self/status') ?? '')?.[1] ?? '',
  );
  const topology = (allowed.length > 0 ? allowed : cpus().map((_, i) => i)).map((cpu) => {
    const base = `/sys/devices/system/cpu/cpu${cpu}/topology`;
    const core = Number(read(`${base}/core_id`)?.trim() ?? cpu);
    const socket = Number(read(`${base}/physical_package_id`)?.trim() ?? 0);
    return { cpu, core: socket * 4096 + (Number.isFinite(core) ? core : cpu), node: Math.max(0, socket) };
  });
  const distinct = new Set(topology.map((t) => t.core)).size;
  const quota = readQuotaCores(read);
  const cores = Math.max(
    1,
    Math.min(distinct || availableParallelism(), quota === undefined ? Infinity : Math.floor(quota)),
  );
  return { physicalCores: cores, topology };
}

/** `0-3,8` as numbers. */
export function parseCpuList(text: string): number[] {
  if (text.trim() === '') return [];
  return text.split(',').flatMap((part) => {
    const [from, to] = part.split('-').map(Number);
    if (from === undefined || !Number.isInteger(from)) return [];
    return Array.from({ length: (to ?? from) - from + 1 }, (_, i) => from + i);
  });
}

function readQuotaCores(read: ReadText): number | undefined {
  const path = /^0::(\/.*)$/m.exec(read('/proc/self/cgroup') ?? '')?.[1];
  if (path === undefined) return undefined;
  const [quota, period] = (read(`/sys/fs/cgroup${path === '/' ? '' : path}/cpu.max`) ?? 'max 100000')
    .trim()
    .split(' ');
  return quota === 'max' || quota === undefined ? undefined : Number(quota) / Number(period ?? 100_000);
}

import { availableParallelism, cpus } from 'node:os';
import { cgroupsOf, countIn } from './cgroup.js';
import { readText, type ReadText } from './read-text.js';

export interface CpuReading {
  readonly physicalCores: number;
  /** Of the processors that this process may use. Processors of one core are siblings. */
  readonly topology: readonly { readonly cpu: number; readonly core: number; readonly node: number }[];
  /** Of the cache nearest to memory; undefined where the system does not say. */
  readonly lastCacheBytes?: number;
}

const CPUS = '/sys/devices/system/cpu';
const NODES = '/sys/devices/system/node';

/**
 * Physical cores that this process may use: hyperthread siblings count once; affinity (taskset), the cpusets and the
 * CPU quotas of its control groups bound it.
 */
export function readCpu(read: ReadText = readText): CpuReading {
  const affinity = parseCpuList(
    /^Cpus_allowed_list:\s*(\S+)$/m.exec(read('/proc/self/status') ?? '')?.[1] ?? '',
  );
  const sets = cpusets(read);
  const all = affinity.length > 0 ? affinity : cpus().map((_, i) => i);
  const within = all.filter((cpu) => sets.every((set) => set.has(cpu)));
  // Affinity is what the system enforces: a cpuset that leaves nothing of it was misread.
  const allowed = within.length > 0 ? within : all;
  const nodes = nodesOf(read);
  const topology = allowed.map((cpu) => {
    const core = coreOf(cpu, read);
    return { cpu, core, node: nodes.get(cpu) ?? 0 };
  });
  const distinct = new Set(topology.map((t) => t.core)).size;
  const quota = readQuotaCores(read);
  const cores = Math.max(1, Math.min(distinct || availableParallelism(), Math.floor(quota ?? Infinity)));
  const cache = lastCacheBytes(allowed[0] ?? 0, read);
  return { physicalCores: cores, topology, ...(cache === undefined ? {} : { lastCacheBytes: cache }) };
}

/** A core's number: the lowest of its siblings, which is unique over sockets; else socket and core; else its own. */
function coreOf(cpu: number, read: ReadText): number {
  const base = `${CPUS}/cpu${cpu}/topology`;
  const siblings = parseCpuList(read(`${base}/core_cpus_list`) ?? read(`${base}/thread_siblings_list`) ?? '');
  if (siblings.includes(cpu)) return Math.min(...siblings);
  const core = countIn(read, `${base}/core_id`);
  const socket = countIn(read, `${base}/physical_package_id`) ?? 0;
  return core === undefined ? cpu : socket * 4096 + core;
}

/** Memory node of each processor. */
function nodesOf(read: ReadText): ReadonlyMap<number, number> {
  const nodes = new Map<number, number>();
  for (const node of parseCpuList(read(`${NODES}/online`) ?? '')) {
    for (const cpu of parseCpuList(read(`${NODES}/node${node}/cpulist`) ?? '')) nodes.set(cpu, node);
  }
  return nodes;
}

const LONGEST_LIST = 8192;

/** `0-3,8` as numbers; what is no list of processors gives none. */
export function parseCpuList(text: string): number[] {
  if (text.trim() === '') return [];
  return text
    .trim()
    .split(',')
    .flatMap((part) => {
      const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part.trim());
      if (match === null) return [];
      const from = Number(match[1]);
      const to = Math.min(Number(match[2] ?? from), LONGEST_LIST);
      return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
    });
}

/** What the control groups allow, the innermost that says so; a parent's set holds its children's. */
function cpusets(read: ReadText): readonly ReadonlySet<number>[] {
  const groups = cgroupsOf('cpuset', read);
  for (const folder of groups?.folders ?? []) {
    for (const name of ['cpuset.cpus.effective', 'cpuset.effective_cpus', 'cpuset.cpus']) {
      const set = parseCpuList(read(`${folder}/${name}`) ?? '');
      if (set.length > 0) return [new Set(set)];
    }
  }
  return [];
}

/** The tightest quota of the groups above this process, in cores. */
function readQuotaCores(read: ReadText): number | undefined {
  const groups = cgroupsOf('cpu', read);
  const quotas = (groups?.folders ?? []).flatMap((folder) => {
    if (groups?.version === 1) {
      const quota = countIn(read, `${folder}/cpu.cfs_quota_us`);
      const period = countIn(read, `${folder}/cpu.cfs_period_us`) ?? 100_000;
      return quota === undefined || period === 0 ? [] : [quota / period];
    }
    const [quota = 'max', period = '100000'] = (read(`${folder}/cpu.max`) ?? '').trim().split(/\s+/);
    const cores = Number(quota) / Number(period);
    return Number.isFinite(cores) && cores > 0 ? [cores] : [];
  });
  return quotas.length === 0 ? undefined : Math.min(...quotas);
}

/** Of the highest level; caches that processors share count once, as one of them sees it. */
function lastCacheBytes(cpu: number, read: ReadText): number | undefined {
  let best: { readonly level: number; readonly bytes: number } | undefined;
  for (let index = 0; index < 8; index++) {
    const base = `${CPUS}/cpu${cpu}/cache/index${index}`;
    const level = countIn(read, `${base}/level`);
    const size = /^(\d+)([KMG]?)$/.exec((read(`${base}/size`) ?? '').trim());
    if (level === undefined || size === null) continue;
    const unit = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }[size[2] ?? ''] ?? 1;
    const bytes = Number(size[1]) * unit;
    if (best === undefined || level > best.level) best = { level, bytes };
  }
  return best?.bytes;
}

import { readFileSync } from 'node:fs';
import { freemem, totalmem } from 'node:os';

export interface MemoryReading {
  /** What the machine has for us: a cgroup's limit counts as the machine's. */
  readonly totalBytes: number;
  /** In use and not reclaimable; file pages that the kernel can drop do not count. */
  readonly usedBytes: number;
  readonly availableBytes: number;
  readonly swapBytes: number;
}

/** Text of a small system file; undefined where there is none (another system, another cgroup version). */
export type ReadText = (path: string) => string | undefined;

export const readText: ReadText = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
};

/** Host memory now, in bytes. Linux reads /proc and its cgroup (v2, v1); elsewhere what Node knows. */
export function readMemory(read: ReadText = readText): MemoryReading {
  const meminfo = parseMeminfo(read('/proc/meminfo') ?? '');
  const hostTotal = meminfo.get('MemTotal') ?? totalmem();
  const hostAvailable = meminfo.get('MemAvailable') ?? freemem();
  const swapBytes = meminfo.get('SwapTotal') ?? 0;
  const host = {
    totalBytes: hostTotal,
    usedBytes: Math.max(0, hostTotal - hostAvailable),
    availableBytes: hostAvailable,
    swapBytes,
  };
  const group = readCgroup(read);
  if (!group || group.limitBytes >= hostTotal) return host;
  const usedBytes = Math.max(0, group.currentBytes - group.reclaimableBytes);
  return {
    totalBytes: group.limitBytes,
    usedBytes,
    availableBytes: Math.min(hostAvailable, Math.max(0, group.limitBytes - usedBytes)),
    swapBytes,
  };
}

/** `MemTotal:  24105 kB` lines as bytes. */
export function parseMeminfo(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split('\n')) {
    const match = /^(\w+(?:\(\w+\))?):\s+(\d+) kB/.exec(line);
    if (match?.[1] !== undefined) values.set(match[1], Number(match[2]) * 1024);
  }
  return values;
}

interface Cgroup {
  readonly limitBytes: number;
  readonly currentBytes: number;
  readonly reclaimableBytes: number;
}

function readCgroup(read: ReadText): Cgroup | undefined {
  const own = read('/proc/self/cgroup') ?? '';
  const v2 = /^0::(\/.*)$/m.exec(own)?.[1];
  if (v2 !== undefined) {
    // The tightest limit among the group and its parents is the one that binds.
    const groups = ancestors(v2).flatMap((path) => {
      const limit = Number(read(`/sys/fs/cgroup${path}/memory.max`)?.trim());
      if (!Number.isFinite(limit)) return [];
      const current = Number(read(`/sys/fs/cgroup${path}/memory.current`) ?? NaN);
      const stat = read(`/sys/fs/cgroup${path}/memory.stat`) ?? '';
      const reclaimable =
        Number(/^inactive_file (\d+)$/m.exec(stat)?.[1] ?? 0) +
        Number(/^active_file (\d+)$/m.exec(stat)?.[1] ?? 0);
      return [
        {
          limitBytes: limit,
          currentBytes: Number.isFinite(current) ? current : 0,
          reclaimableBytes: reclaimable,
        },
      ];
    });
    return tightest(groups);
  }
  const v1 = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(\/.*)$/m.exec(own)?.[1];
  if (v1 === undefined) return undefined;
  const groups = [...ancestors(v1), ''].flatMap((path) => {
    const limit = Number(read(`/sys/fs/cgroup/memory${path}/memory.limit_in_bytes`)?.trim());
    if (!Number.isFinite(limit)) return [];
    const stat = read(`/sys/fs/cgroup/memory${path}/memory.stat`) ?? '';
    return [
      {
        limitBytes: limit,
        currentBytes: Number(read(`/sys/fs/cgroup/memory${path}/memory.usage_in_bytes`) ?? 0),
        reclaimableBytes:
          Number(/^total_inactive_file (\d+)$/m.exec(stat)?.[1] ?? 0) +
          Number(/^total_active_file (\d+)$/m.exec(stat)?.[1] ?? 0),
      },
    ];
  });
  return tightest(groups);
}

function ancestors(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '');
  return [...parts.map((_, i) => `/${parts.slice(0, parts.length - i).join('/')}`), ''];
}

const tightest = (groups: readonly Cgroup[]): Cgroup | undefined =>
  groups.reduce<Cgroup | undefined>(
    (best, g) => (best && best.limitBytes <= g.limitBytes ? best : g),
    undefined,
  );

/** Anonymous and locked bytes of a process: what it alone holds. Undefined when it is gone. */
export function anonymousBytes(pid: number, read: ReadText = readText): number | undefined {
  const status = read(`/proc/${pid}/status`);
  if (status === undefined) return undefined;
  const values = parseMeminfo(status);
  const anon = values.get('RssAnon');
  return anon === undefined ? undefined : anon + (values.get('VmLck') ?? 0);
}

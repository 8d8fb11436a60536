import { freemem, totalmem } from 'node:os';
import { cgroupsOf, countIn, statIn } from './cgroup.js';
import { memoryElsewhere } from './elsewhere.js';
import type { MemoryReading } from './memory-reading.js';
import { readText, type ReadText } from './read-text.js';

export { readText, type ReadText } from './read-text.js';

/** Host memory now, in bytes. Linux reads /proc and its cgroup (v2, v1); see elsewhere.ts for other systems. */
export function readMemory(read: ReadText = readText): MemoryReading {
  const text = read('/proc/meminfo');
  const elsewhere = text === undefined ? memoryElsewhere() : undefined;
  if (elsewhere !== undefined) return elsewhere;
  const meminfo = parseMeminfo(text ?? '');
  const hostTotal = meminfo.get('MemTotal') ?? totalmem();
  const hostAvailable = meminfo.get('MemAvailable') ?? freemem();
  const swapTotal = meminfo.get('SwapTotal') ?? 0;
  const swapUsed = Math.max(0, swapTotal - (meminfo.get('SwapFree') ?? swapTotal));
  const host: MemoryReading = {
    totalBytes: hostTotal,
    usedBytes: Math.max(0, hostTotal - hostAvailable),
    availableBytes: hostAvailable,
    swapBytes: swapTotal,
    swapUsedBytes: swapUsed,
  };
  const groups = readGroups(read);
  const swap = tightest(groups.map((g) => g.swap));
  const swapBytes = swap === undefined ? swapTotal : Math.min(swapTotal, swap.limitBytes);
  const swapUsedBytes = swap === undefined ? swapUsed : Math.min(swapBytes, swap.usedBytes);
  const group = tightest(groups.map((g) => g.memory));
  if (!group || group.limitBytes >= hostTotal) return { ...host, swapBytes, swapUsedBytes };
  return {
    totalBytes: group.limitBytes,
    usedBytes: group.usedBytes,
    availableBytes: Math.min(hostAvailable, Math.max(0, group.limitBytes - group.usedBytes)),
    swapBytes,
    swapUsedBytes,
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

interface Bound {
  readonly limitBytes: number;
  readonly usedBytes: number;
}

/** Of every group above this process: what bounds its memory, and its swap. */
function readGroups(read: ReadText): readonly { readonly memory?: Bound; readonly swap?: Bound }[] {
  const groups = cgroupsOf('memory', read);
  if (groups === undefined) return [];
  return groups.folders.map((folder) => (groups.version === 2 ? readV2(folder, read) : readV1(folder, read)));
}

function readV2(folder: string, read: ReadText) {
  const limit = countIn(read, `${folder}/memory.max`);
  const stat = read(`${folder}/memory.stat`) ?? '';
  const reclaimable = statIn(stat, 'inactive_file') + statIn(stat, 'active_file');
  const swap = countIn(read, `${folder}/memory.swap.max`);
  return {
    ...bound('memory', limit, (countIn(read, `${folder}/memory.current`) ?? 0) - reclaimable),
    ...bound('swap', swap, countIn(read, `${folder}/memory.swap.current`) ?? 0),
  };
}

/** `memsw` counts memory and swap together. */
function readV1(folder: string, read: ReadText) {
  const limit = countIn(read, `${folder}/memory.limit_in_bytes`);
  const usage = countIn(read, `${folder}/memory.usage_in_bytes`) ?? 0;
  const stat = read(`${folder}/memory.stat`) ?? '';
  const reclaimable = statIn(stat, 'total_inactive_file') + statIn(stat, 'total_active_file');
  const both = countIn(read, `${folder}/memory.memsw.limit_in_bytes`);
  const bothUsed = countIn(read, `${folder}/memory.memsw.usage_in_bytes`) ?? usage;
  return {
    ...bound('memory', limit, usage - reclaimable),
    ...bound('swap', both === undefined || limit === undefined ? undefined : both - limit, bothUsed - usage),
  };
}

const bound = <K extends string>(key: K, limit: number | undefined, used: number) =>
  (limit === undefined
    ? {}
    : { [key]: { limitBytes: Math.max(0, limit), usedBytes: Math.max(0, used) } }) as Partial<
    Record<K, Bound>
  >;

/** The tightest limit among a group and its parents is the one that binds. */
const tightest = (bounds: readonly (Bound | undefined)[]): Bound | undefined =>
  bounds.reduce<Bound | undefined>(
    (best, b) => (b === undefined || (best && best.limitBytes <= b.limitBytes) ? best : b),
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

import type { ReadText } from './read-text.js';

/**
 * Where this process's control groups lie, the innermost first, up to the root of what is mounted. Limits of all of
 * them bind. A container often sees only its own group at the mount's root: then that is the last of the list.
 */
export interface Cgroups {
  readonly version: 1 | 2;
  readonly folders: readonly string[];
}

/** @param controller `memory`, `cpu` or `cpuset`; version 2 keeps all in one tree. */
export function cgroupsOf(controller: string, read: ReadText): Cgroups | undefined {
  const own = read('/proc/self/cgroup') ?? '';
  const mounts = read('/proc/self/mountinfo') ?? '';
  for (const line of own.split('\n')) {
    const match = /^\d+:([^:]*):(\/.*)$/.exec(line);
    if (match?.[1]?.split(',').includes(controller) === true && match[2] !== undefined) {
      const mount = mountOf(mounts, 'cgroup', controller) ?? {
        point: `/sys/fs/cgroup/${controller}`,
        root: '/',
      };
      return { version: 1, folders: foldersOf(mount, match[2]) };
    }
  }
  const path = /^0::(\/.*)$/m.exec(own)?.[1];
  if (path === undefined) return undefined;
  const mount = mountOf(mounts, 'cgroup2') ?? { point: '/sys/fs/cgroup', root: '/' };
  return { version: 2, folders: foldersOf(mount, path) };
}

interface Mount {
  readonly point: string;
  /** Which group of the system the mount shows at its top. */
  readonly root: string;
}

/** Lines of mountinfo: `36 35 0:30 <root> <point> <options> - <type> <source> <super options>`. */
function mountOf(mounts: string, type: string, controller?: string): Mount | undefined {
  for (const line of mounts.split('\n')) {
    const [head = '', tail = ''] = line.split(' - ');
    const [, , , root, point] = head.split(' ');
    const [kind, , options = ''] = tail.split(' ');
    if (kind !== type || root === undefined || point === undefined) continue;
    if (controller === undefined || options.split(',').includes(controller)) return { root, point };
  }
  return undefined;
}

function foldersOf({ point, root }: Mount, path: string): readonly string[] {
  // Under a namespace the path may lie above what is mounted (`/../..`), or repeat the mount's own root.
  const below =
    root !== '/' && (path === root || path.startsWith(`${root}/`)) ? path.slice(root.length) : path;
  const parts = below.split('/').filter((part) => part !== '' && part !== '..');
  return [...parts.map((_, i) => `${point}/${parts.slice(0, parts.length - i).join('/')}`), point];
}

/** A whole number in a file; undefined for `max`, for what is no number, and where there is no file. */
export function countIn(read: ReadText, path: string): number | undefined {
  const text = read(path)?.trim();
  const value = text === undefined || text === '' ? NaN : Number(text);
  // Version 1 writes the largest page-aligned number for "no limit".
  return Number.isFinite(value) && value >= 0 && value < 2 ** 62 ? value : undefined;
}

/** A value of a file of `key value` lines. */
export const statIn = (text: string, key: string): number =>
  Number(new RegExp(`^${key} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);

import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface Drive {
  /** Where it is mounted, as the system names it; the folder itself where the system does not say. */
  readonly mount: string;
  readonly totalBytes: number;
  readonly freeBytes: number;
}

/** The drives on which these folders lie, each once and in the order of the folders. A folder that is not there yet counts as the nearest above it. */
export async function readDrives(folders: readonly string[], mountinfo = ''): Promise<readonly Drive[]> {
  const points = mountPoints(mountinfo);
  const drives = new Map<number, Drive>();
  for (const wanted of folders) {
    const folder = await nearest(wanted);
    const stats = folder === undefined ? undefined : await stat(folder).catch(() => undefined);
    if (folder === undefined || stats === undefined || drives.has(stats.dev)) continue;
    const fs = await statfs(folder).catch(() => undefined);
    if (!fs) continue;
    const mount = points.find((point) => folder === point || point === '/' || folder.startsWith(`${point}/`));
    drives.set(stats.dev, {
      mount: mount ?? folder,
      totalBytes: fs.blocks * fs.bsize,
      freeBytes: fs.bavail * fs.bsize,
    });
  }
  return [...drives.values()];
}

async function nearest(folder: string): Promise<string | undefined> {
  for (let path = folder; ; path = dirname(path)) {
    const there = await stat(path).catch(() => undefined);
    if (there) return path;
    if (dirname(path) === path) return undefined;
  }
}

/** Mount points of /proc/self/mountinfo, the longest first; blanks in them are written as `\040`. */
export function mountPoints(mountinfo: string): readonly string[] {
  return mountinfo
    .split('\n')
    .map((line) => line.split(' ')[4])
    .filter((point) => point !== undefined)
    .map((point) =>
      point.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(parseInt(code, 8))),
    )
    .sort((a, b) => b.length - a.length);
}

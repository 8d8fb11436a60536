import { statSync } from 'node:fs';

/** Which file stood at a path: what a program that has it open goes on reading, whatever stands there later. */
export interface FileIdentity {
  readonly path: string;
  readonly device: number;
  readonly inode: number;
  readonly bytes: number;
  readonly modifiedMs: number;
}

export type FilesNow = 'as-loaded' | 'replaced' | 'gone';

/** Links are followed: a store's link that points elsewhere now is another file. Missing ones are left out. */
export const identitiesOf = (files: readonly string[]): readonly FileIdentity[] =>
  files.flatMap((path) => identityOf(path) ?? []);

/** What became of the files that an engine was started with. */
export function filesNow(loaded: readonly FileIdentity[]): FilesNow {
  let replaced = false;
  for (const was of loaded) {
    const is = identityOf(was.path);
    if (is === undefined) return 'gone';
    replaced ||= !isSameFile(is, was);
  }
  return replaced ? 'replaced' : 'as-loaded';
}

export const isSameFile = (a: FileIdentity, b: FileIdentity): boolean =>
  a.device === b.device && a.inode === b.inode && a.bytes === b.bytes && a.modifiedMs === b.modifiedMs;

function identityOf(path: string): FileIdentity | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true
    ? { path, device: stat.dev, inode: stat.ino, bytes: stat.size, modifiedMs: stat.mtimeMs }
    : undefined;
}

import { readFileSync } from 'node:fs';

/** Text of a small system file; undefined where there is none (another system, another cgroup version). */
export type ReadText = (path: string) => string | undefined;

export const readText: ReadText = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
};

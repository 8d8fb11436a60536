import { readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { isExecutable } from '../spawn.js';

const NAME = 'llama-server';

export interface SearchPlaces {
  /** Named by the settings. */
  readonly named?: string;
  readonly home: string;
  readonly path: string | undefined;
  /** `/opt`, but for tests. */
  readonly opt: string;
}

/** Where a llama-server may be, in the order in which one is wanted. Only what can be executed. */
export function findServers(places: SearchPlaces): readonly string[] {
  const candidates = [
    ...(places.named === undefined ? [] : [places.named]),
    join(places.home, 'engines', 'bin', NAME),
    ...(places.path ?? '')
      .split(delimiter)
      .filter((folder) => folder !== '')
      .map((folder) => join(folder, NAME)),
    ...foldersIn(places.opt).map((folder) => join(places.opt, folder, 'bin', NAME)),
  ];
  return [...new Set(candidates)].filter(isExecutable);
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
      .map((entry) => entry.name)
      .sort();
  } catch {
    // Not every system has one.
    return [];
  }
}

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolveSettings, type ResolvedSettings } from './resolve.js';

/** Resolves the settings of this very process. @throws UsageError */
export function loadSettings(flags: Readonly<Record<string, string | true>>): ResolvedSettings {
  return resolveSettings({
    flags,
    env: process.env,
    platform: process.platform,
    userHome: homedir(),
    cwd: process.cwd(),
    readFile: (path) => {
      try {
        return readFileSync(path, 'utf8');
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
        throw new Error(
          `The settings file ${path} cannot be read (${code ?? String(error)}). Name another one with --config.`,
          {
            cause: error,
          },
        );
      }
    },
  });
}

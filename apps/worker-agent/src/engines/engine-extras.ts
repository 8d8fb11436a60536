import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { whyExtrasRefused } from '#domain/engine-arguments.js';
import type { EngineExtras, EngineKind } from '#domain/placement-terms.js';
import { LoadFailure } from '../ports.js';

/** In the home folder: `{"name": "value"}`, readable by its owner alone. No setting and no event ever holds a value of it. */
export const secretsFile = (enginesFolder: string): string =>
  join(dirname(enginesFolder), 'engine-secrets.json');

/**
 * The variables that a pair's settings give its engine, secrets looked up.
 * @throws LoadFailure when the engine does not take them, or a secret is not there for the owner alone.
 */
export function engineVariables(
  extras: EngineExtras,
  kind: EngineKind,
  file: string,
): Readonly<Record<string, string>> {
  const refused = whyExtrasRefused(kind, extras);
  if (refused !== undefined) throw failure(`Settings of this model do not go with its engine: ${refused}.`);
  const given = Object.entries(extras.engineEnv ?? {});
  let secrets: Readonly<Record<string, unknown>> | undefined;
  return Object.fromEntries(
    given.map(([name, value]) => {
      if (typeof value === 'string') return [name, value];
      const secret = (secrets ??= readSecrets(file))[value.secret];
      if (typeof secret !== 'string' || secret === '')
        throw failure(`${name} is to be the secret "${value.secret}", and ${file} has no such entry.`);
      return [name, secret];
    }),
  );
}

function readSecrets(file: string): Readonly<Record<string, unknown>> {
  try {
    const mode = statSync(file).mode & 0o777;
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw failure(`${file} can be read by others (mode ${mode.toString(8)}): chmod 600 it.`);
    const entries: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof entries === 'object' && entries !== null) return entries as Record<string, unknown>;
  } catch (error) {
    if (error instanceof LoadFailure) throw error;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw failure(`Settings name a secret, and there is no ${file}.`);
  }
  throw failure(`${file} is no JSON object of names and texts.`);
}

const failure = (message: string): LoadFailure => new LoadFailure('incompatible-engine', message, '');

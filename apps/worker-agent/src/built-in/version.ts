import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export interface BuiltInVersion {
  readonly version: string;
  /** The library and the llama.cpp inside it: buffers change with either. */
  readonly build: string;
}

let known: BuiltInVersion | undefined;

/** From the files of the installed package; nothing is loaded. */
export function builtInVersion(): BuiltInVersion {
  if (known) return known;
  const entry = createRequire(import.meta.url).resolve('node-llama-cpp');
  const root = join(dirname(entry), '..');
  const field = (file: string, name: string) => {
    const value = (JSON.parse(readFileSync(join(root, file), 'utf8')) as Record<string, unknown>)[name];
    if (typeof value !== 'string') throw new Error(`${file} of node-llama-cpp does not say its ${name}.`);
    return value;
  };
  const version = field('package.json', 'version');
  known = { version, build: `${version}+llama.cpp-${field('llama/binariesGithubRelease.json', 'release')}` };
  return known;
}

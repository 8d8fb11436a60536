import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where models may lie, and how they are laid out there. */
export interface ModelRoot {
  readonly name: 'models' | 'huggingface' | 'lm-studio' | 'ollama' | 'process';
  readonly path: string;
  /** Of a `process` root: what a running program was started with. Nothing else below the path is looked at. */
  readonly named?: NamedFiles;
}

/** Files that a command line names together; absolute. */
export interface NamedFiles {
  /** A GGUF file or a folder for transformers. */
  readonly model: string;
  readonly projectors: readonly string[];
  readonly adapters: readonly string[];
}

/**
 * The roots of this machine, in the order in which they win when two hold the same model.
 * @param models Berth's own root (BERTH_MODELS).
 */
export function modelRoots(
  models: string,
  env: Readonly<Record<string, string | undefined>>,
  home: string = homedir(),
): readonly ModelRoot[] {
  const set = (name: string) => (env[name] === '' ? undefined : env[name]);
  const cache = set('XDG_CACHE_HOME') ?? join(home, '.cache');
  const huggingface =
    set('HF_HUB_CACHE') ??
    set('HUGGINGFACE_HUB_CACHE') ??
    join(set('HF_HOME') ?? join(cache, 'huggingface'), 'hub');
  const all: readonly ModelRoot[] = [
    { name: 'models', path: models },
    { name: 'huggingface', path: huggingface },
    { name: 'lm-studio', path: join(home, '.lmstudio', 'models') },
    { name: 'lm-studio', path: join(cache, 'lm-studio', 'models') },
    ...(set('OLLAMA_MODELS') === undefined
      ? [
          { name: 'ollama' as const, path: join(home, '.ollama', 'models') },
          { name: 'ollama' as const, path: '/usr/share/ollama/.ollama/models' },
          { name: 'ollama' as const, path: '/var/lib/ollama/.ollama/models' },
        ]
      : [{ name: 'ollama' as const, path: set('OLLAMA_MODELS') ?? '' }]),
  ];
  return all.filter((root, i) => all.findIndex((other) => other.path === root.path) === i);
}

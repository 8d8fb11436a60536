import { isAbsolute, join } from 'node:path';
import type { NamedFiles } from './roots.js';

/** A process as the operating system shows it. */
export interface SeenProcess {
  readonly argv: readonly string[];
  /** Where its relative paths begin; undefined when that is not ours to see. */
  readonly cwd?: string;
  /** Its environment; empty when that is not ours to see. */
  readonly env: Readonly<Record<string, string>>;
}

/** What a command line says of models on this disk. A hint: what is not there, or is none, is dropped by the scan. */
export interface Hints {
  readonly files: readonly NamedFiles[];
  /** Roots of stores, by the program that keeps them. */
  readonly roots: readonly { readonly name: 'huggingface' | 'ollama' | 'models'; readonly path: string }[];
}

const NOTHING: Hints = { files: [], roots: [] };

/** Programs of llama.cpp that load a model. */
const LLAMA =
  /^(?:llama-(?:server|cli|run|bench|perplexity|embedding|tts|mtmd-cli)|koboldcpp|llamafile)(?:\.exe)?$/;
const PYTHON = /^python[\d.]*$/;

/** Hints of llama.cpp, vLLM (and SGLang, which is started alike) and Ollama; nothing for any other program. */
export function hintsOf(process: SeenProcess): Hints {
  const [program = '', ...rest] = process.argv;
  const name = program.slice(program.lastIndexOf('/') + 1);
  if (name === 'ollama') return hintsOfOllama(process, rest);
  if (LLAMA.test(name)) return hintsOfLlama(process, rest);
  if (name === 'vllm') return hintsOfPython(process, rest);
  if (PYTHON.test(name)) {
    const [script = '', module = ''] = rest;
    const isVllm = /(?:^|\/)vllm$/.test(script) || (script === '-m' && /^vllm\./.test(module));
    const isSglang = script === '-m' && /^sglang\./.test(module);
    if (isVllm || isSglang) return hintsOfPython(process, rest);
  }
  return NOTHING;
}

function hintsOfLlama(process: SeenProcess, args: readonly string[]): Hints {
  const model = valueOf(args, '-m', '--model') ?? process.env['LLAMA_ARG_MODEL'];
  const draft = valueOf(args, '-md', '--model-draft');
  const folder = valueOf(args, '--models-dir') ?? process.env['LLAMA_ARG_MODELS_DIR'];
  const projectors = paths(process, valuesOf(args, '--mmproj', '-mm'));
  const adapters = paths(
    process,
    valuesOf(args, '--lora').flatMap((value) => value.split(',')),
  );
  const files = [
    ...paths(process, [model]).map((path) => ({ model: path, projectors, adapters })),
    ...paths(process, [draft]).map((path) => ({ model: path, projectors: [], adapters: [] })),
  ];
  return { files, roots: paths(process, [folder]).map((path) => ({ name: 'models' as const, path })) };
}

function hintsOfPython(process: SeenProcess, args: readonly string[]): Hints {
  const serve = args.indexOf('serve');
  const positional = serve < 0 ? undefined : args[serve + 1];
  const model =
    valueOf(args, '--model', '--model-path') ??
    (positional?.startsWith('-') === true ? undefined : positional);
  // A name such as owner/repo is one of the cache, whose folder the program was told.
  const files = isPath(model)
    ? paths(process, [model]).map((path) => ({ model: path, projectors: [], adapters: [] }))
    : [];
  const cache = valueOf(args, '--download-dir') ?? process.env['HF_HUB_CACHE'];
  const home = process.env['HF_HOME'];
  const hubs = [...paths(process, [cache]), ...paths(process, [home]).map((path) => join(path, 'hub'))];
  return { files, roots: hubs.map((path) => ({ name: 'huggingface' as const, path })) };
}

/** `ollama runner --model <store>/blobs/sha256-…` and `ollama serve`. */
function hintsOfOllama(process: SeenProcess, args: readonly string[]): Hints {
  const model = valueOf(args, '--model');
  const store = model === undefined ? undefined : /^(\/.*)\/blobs\/sha256-[0-9a-f]{64}$/.exec(model)?.[1];
  const roots = [...new Set(paths(process, [store, process.env['OLLAMA_MODELS']]))];
  return { files: [], roots: roots.map((path) => ({ name: 'ollama' as const, path })) };
}

const isPath = (value: string | undefined): value is string =>
  value !== undefined && (isAbsolute(value) || /^\.{1,2}\//.test(value));

/** Absolute paths; a relative one whose beginning is not known is dropped. */
function paths(process: SeenProcess, values: readonly (string | undefined)[]): readonly string[] {
  return values.flatMap((value) => {
    if (value === undefined || value === '' || value.includes('\0')) return [];
    if (isAbsolute(value)) return [join(value)];
    return process.cwd === undefined ? [] : [join(process.cwd, value)];
  });
}

/** Values of a flag, as `--flag value` or `--flag=value`. */
function valuesOf(args: readonly string[], ...flags: readonly string[]): readonly string[] {
  return args.flatMap((arg, i) => {
    if (flags.includes(arg)) {
      const next = args[i + 1];
      return next === undefined ? [] : [next];
    }
    const flag = flags.find((f) => f.startsWith('--') && arg.startsWith(`${f}=`));
    return flag === undefined ? [] : [arg.slice(flag.length + 1)];
  });
}

const valueOf = (args: readonly string[], ...flags: readonly string[]): string | undefined =>
  valuesOf(args, ...flags).at(-1);

import type { EngineEnv, EngineExtras, EngineKind } from './placement-terms.js';

const NUMBER = /^-?\d+(\.\d+)?(e-?\d+)?$/;
const WHOLE = /^-?\d+$/;
const WORD = /^[\w.:-]+$/;
const JSON_OBJECT = /^\{.*\}$/s;

/**
 * What may be passed on, with the form of its value; null for a switch. Nothing that decides memory, devices, threads or
 * context, which are the plan's; nothing that opens a file or a port, and nothing that writes prompts into a log.
 */
const ARGUMENTS: Readonly<Record<EngineKind, Readonly<Record<string, RegExp | null>>>> = {
  'built-in': {},
  'llama-server': {
    '--rope-scaling': /^(none|linear|yarn)$/,
    '--rope-scale': NUMBER,
    '--rope-freq-base': NUMBER,
    '--rope-freq-scale': NUMBER,
    '--yarn-orig-ctx': WHOLE,
    '--yarn-ext-factor': NUMBER,
    '--yarn-attn-factor': NUMBER,
    '--yarn-beta-slow': NUMBER,
    '--yarn-beta-fast': NUMBER,
    '--chat-template': WORD,
    '--chat-template-kwargs': JSON_OBJECT,
    '--reasoning-format': WORD,
    '--reasoning-budget': WHOLE,
    '--pooling': /^(none|mean|cls|last|rank)$/,
    '--temp': NUMBER,
    '--top-k': WHOLE,
    '--top-p': NUMBER,
    '--min-p': NUMBER,
    '--repeat-penalty': NUMBER,
    '--repeat-last-n': WHOLE,
    '--presence-penalty': NUMBER,
    '--frequency-penalty': NUMBER,
    '--seed': WHOLE,
    '--keep': WHOLE,
    '--cache-reuse': WHOLE,
    '--slot-prompt-similarity': NUMBER,
    '--poll': WHOLE,
    '--numa': /^(distribute|isolate|numactl)$/,
    '--timeout': WHOLE,
    '--threads-http': WHOLE,
    '--context-shift': null,
    '--no-context-shift': null,
    '--no-warmup': null,
    '--spm-infill': null,
  },
};

/** Variables by name alone: many others name a library that is loaded into the engine. */
const VARIABLES: Readonly<Record<EngineKind, readonly string[]>> = {
  'built-in': [],
  'llama-server': [
    'GGML_CUDA_FORCE_MMQ',
    'GGML_CUDA_FORCE_CUBLAS',
    'GGML_CUDA_DISABLE_GRAPHS',
    'GGML_VK_DISABLE_COOPMAT',
    'GGML_VK_DISABLE_COOPMAT2',
    'GGML_METAL_CONCURRENCY_DISABLE',
    'CUDA_SCALE_LAUNCH_QUEUES',
    'HSA_OVERRIDE_GFX_VERSION',
    'HF_TOKEN',
  ],
};

/** A variable of such a name holds a secret, which is never written into a setting. */
const SECRET = /TOKEN|SECRET|PASSWORD|KEY$/;

/** Why an engine does not take these, as the end of a sentence; undefined when it takes all of them. */
export function whyExtrasRefused(
  kind: EngineKind,
  { engineArgs, engineEnv }: EngineExtras,
): string | undefined {
  return whyArgumentsRefused(kind, engineArgs ?? []) ?? whyEnvRefused(kind, engineEnv ?? {});
}

function whyArgumentsRefused(kind: EngineKind, given: readonly string[]): string | undefined {
  const known = ARGUMENTS[kind];
  for (let at = 0; at < given.length; at++) {
    const name = given[at] ?? '';
    if (!Object.hasOwn(known, name)) return `${kind} takes ${listed(Object.keys(known))}, and not "${name}"`;
    const form = known[name];
    if (!form) continue;
    const value = given[++at];
    if (value === undefined || !form.test(value))
      return `${kind} takes ${name} with another value than ${value === undefined ? 'none' : `"${value}"`}`;
  }
  return undefined;
}

function whyEnvRefused(kind: EngineKind, given: EngineEnv): string | undefined {
  const known = VARIABLES[kind];
  for (const [name, value] of Object.entries(given)) {
    if (!known.includes(name)) return `${kind} takes the variables ${listed(known)}, and not "${name}"`;
    if (SECRET.test(name) && typeof value === 'string')
      return `${name} is a secret: {"secret": "name"} names its entry in the file of secrets, and the value stands there alone`;
  }
  return undefined;
}

const listed = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '));

const KINDS = Object.keys(ARGUMENTS) as readonly EngineKind[];

/** Whether some engine takes them; else why the one that takes the most does not. */
export function whyNoEngineTakes(extras: EngineExtras): string | undefined {
  const whys = KINDS.map((kind) => whyExtrasRefused(kind, extras));
  return whys.includes(undefined) ? undefined : whys[KINDS.indexOf('llama-server')];
}

export const isEngineArgs = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length > 0 && value.every((v) => typeof v === 'string' && v !== '');

export const isEngineEnv = (value: unknown): value is EngineEnv =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.keys(value).length > 0 &&
  Object.values(value as Record<string, unknown>).every(
    (v) =>
      typeof v === 'string' ||
      (typeof v === 'object' &&
        v !== null &&
        Object.keys(v).join() === 'secret' &&
        typeof (v as { secret: unknown }).secret === 'string'),
  );

/** Whether two engines were given the same. */
export const sameExtras = (a: EngineExtras, b: EngineExtras): boolean =>
  (a.engineArgs === b.engineArgs && a.engineEnv === b.engineEnv) || areAlike(a, b);

const areAlike = (a: EngineExtras, b: EngineExtras): boolean =>
  JSON.stringify(a.engineArgs ?? []) === JSON.stringify(b.engineArgs ?? []) && envText(a) === envText(b);

const envText = ({ engineEnv = {} }: EngineExtras): string =>
  JSON.stringify(Object.entries(engineEnv).sort(([a], [b]) => (a < b ? -1 : 1)));

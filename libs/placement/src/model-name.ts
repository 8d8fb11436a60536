import { berthError } from '#domain/errors.js';
import { KV_TYPES, type KvType, type Rung } from '#domain/placement-terms.js';
import { err, ok, type Result } from '#domain/result.js';
import type { SettingsPatch } from './setting-levels.js';

/** What a call asks of placement beside its model: taken off before the engine sees the name. */
export interface CallOptions {
  /** Lies over the settings of fleet, worker and pair. */
  readonly settings: SettingsPatch;
  /** `@quant=LABEL`: the artifact that must serve. */
  readonly artifact?: string;
  /** The worker that must serve, by its id or name. */
  readonly worker?: string;
  /** `@fit`: the ladder from the top, without the pair's pins. */
  readonly fit: boolean;
}

export const noOptions: CallOptions = { settings: {}, fit: false };

export interface ModelName {
  readonly name: string;
  readonly options: CallOptions;
}

const RUNG_OPTIONS: Readonly<Record<string, Rung>> = {
  gpu: 'gpu-only',
  moe: 'moe',
  '4bit': '4bit',
  ram: 'ram-only',
  'max-ram': 'max-ram',
  'max-gpu': 'max-gpu',
};

export const KNOWN_OPTIONS =
  '@gpu, @moe, @4bit, @ram, @max-ram, @max-gpu, @ctx=N, @kv=f16|q8_0|q4_0, @quant=LABEL, @fit';

/**
 * Splits `owner/repo@ctx=8192,kv=q8_0@ram` into the name and its options. Several rungs together mean any of them.
 * @returns `invalid_request` that lists the known options, for one that is unknown or malformed.
 */
export function parseModelName(text: string): Result<ModelName> {
  const [name = '', ...groups] = text.split('@');
  if (name === '') return bad(text, 'the name before the options is empty');
  const rungs: Rung[] = [];
  let settings: SettingsPatch = {};
  let artifact: string | undefined;
  let fit = false;
  const given = new Map<string, string>();
  for (const option of groups.flatMap((group) => group.split(','))) {
    const at = option.indexOf('=');
    const key = at < 0 ? option : option.slice(0, at);
    const value = at < 0 ? undefined : option.slice(at + 1);
    const before = value === undefined ? undefined : given.get(key);
    if (before !== undefined) return bad(text, `"${key}" is given twice, as "${before}" and as "${option}"`);
    if (value !== undefined) given.set(key, option);
    const rung = Object.hasOwn(RUNG_OPTIONS, key) ? RUNG_OPTIONS[key] : undefined;
    if (rung && value === undefined) rungs.push(rung);
    else if (key === 'fit' && value === undefined) fit = true;
    else if (key === 'ctx') {
      const tokens = value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : 0;
      if (tokens < 1) return bad(text, `"${option}" needs a whole number of tokens, as in @ctx=8192`);
      settings = { ...settings, context: tokens };
    } else if (key === 'kv') {
      const kvType = KV_TYPES.find((type): type is KvType => type === value);
      if (!kvType) return bad(text, `"${option}" needs one of ${KV_TYPES.join(', ')}`);
      settings = { ...settings, kvType };
    } else if (key === 'quant') {
      if (!value) return bad(text, `"${option}" needs an artifact's label, as in @quant=Q4_K_M`);
      artifact = value;
    } else return bad(text, `"@${option}" is no option of a model's name`);
  }
  if (rungs.length > 0) settings = { ...settings, allowedRungs: rungs };
  return ok({ name, options: { settings, fit, ...(artifact === undefined ? {} : { artifact }) } });
}

const bad = (text: string, what: string): Result<never> =>
  err(
    berthError(
      'invalid_request',
      `The model name "${text}" cannot be read: ${what}. Known: ${KNOWN_OPTIONS}.`,
      {
        param: 'model',
        details: { known: KNOWN_OPTIONS.split(', ') },
      },
    ),
  );

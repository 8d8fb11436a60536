import { defined, isObject, type Json, objectOf } from '../json.js';
import { Untranslatable } from '../protocol.js';

/** Ollama's names for what engines call otherwise; every other option goes on under its own name. */
const RENAMED: Readonly<Record<string, string>> = { num_predict: 'max_tokens' };

/** How a model is loaded is Berth's to decide, but for the context. */
const LOADING = new Set([
  'num_ctx',
  'num_batch',
  'num_gpu',
  'main_gpu',
  'num_thread',
  'num_keep',
  'numa',
  'low_vram',
  'use_mmap',
  'use_mlock',
  'vocab_only',
  'f16_kv',
  'penalize_newline',
]);

/** `options` as fields of a body. */
export function sampling(options: unknown): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(objectOf(options))) {
    if (LOADING.has(name) || value === null) continue;
    out[RENAMED[name] ?? name] = value;
  }
  // Without end, and until the context is full: both are what engines do when nothing is said.
  if (typeof out['max_tokens'] === 'number' && out['max_tokens'] < 0) delete out['max_tokens'];
  return out;
}

/** `num_ctx` and `keep_alive` as options for Berth. */
export function berthOptions(body: Json): Json | undefined {
  const context = objectOf(body['options'])['num_ctx'];
  const idleUnloadSeconds = keepAliveSeconds(body['keep_alive']);
  const given = body['berth'];
  const own = defined({
    context: typeof context === 'number' && context > 0 ? context : undefined,
    idleUnloadSeconds,
    ...(isObject(given) ? given : {}),
  });
  return Object.keys(own).length === 0 ? undefined : own;
}

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-9,
  us: 1e-6,
  µs: 1e-6,
  ms: 1e-3,
  s: 1,
  m: 60,
  h: 3600,
};
const DURATION = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/;
/** Long enough to be for ever. */
const FOR_EVER_SECONDS = 10 * 365 * 24 * 3600;

/** Seconds, or Go's durations (`5m`, `1h30m`); below zero means for ever. */
export function keepAliveSeconds(value: unknown): number | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'number' && Number.isFinite(value)) return value < 0 ? FOR_EVER_SECONDS : value;
  if (typeof value === 'string') {
    if (/^-/.test(value)) return FOR_EVER_SECONDS;
    if (/^\d+(?:\.\d+)?$/.test(value)) return Number(value);
    if (DURATION.test(value)) {
      let seconds = 0;
      for (const [, amount, unit] of value.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)) {
        seconds += Number(amount) * (UNITS[unit ?? ''] ?? 0);
      }
      return seconds;
    }
  }
  throw new Untranslatable('"keep_alive" must be seconds or a duration such as "5m".', 'keep_alive');
}

/** `format` as a response format. */
export function format(value: unknown): Json | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (value === 'json') return { type: 'json_object' };
  if (isObject(value))
    return { type: 'json_schema', json_schema: { name: 'answer', schema: value, strict: true } };
  throw new Untranslatable('"format" must be "json" or a JSON schema.', 'format');
}

/** `think` as the switches that templates know. */
export function thinking(value: unknown): Json {
  if (typeof value === 'boolean') return { chat_template_kwargs: { enable_thinking: value } };
  if (typeof value !== 'string' || value === '') return {};
  return {
    reasoning_effort: value,
    chat_template_kwargs: { enable_thinking: true, reasoning_effort: value },
  };
}

const SIGNATURES = [
  ['iVBOR', 'png'],
  ['/9j/', 'jpeg'],
  ['R0lGOD', 'gif'],
  ['UklGR', 'webp'],
] as const;

/** Pictures come as bare base64: what they are is in their first bytes. */
export function imageParts(images: unknown, where: string): Json[] {
  if (images === undefined || images === null) return [];
  if (!Array.isArray(images)) throw new Untranslatable(`"${where}" must be an array of base64 texts.`, where);
  return images.map((image: unknown) => {
    if (typeof image !== 'string')
      throw new Untranslatable(`"${where}" must be an array of base64 texts.`, where);
    const kind = SIGNATURES.find(([start]) => image.startsWith(start))?.[1] ?? 'png';
    const url = image.startsWith('data:') ? image : `data:image/${kind};base64,${image}`;
    return { type: 'image_url', image_url: { url } };
  });
}

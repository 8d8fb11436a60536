import type { CallTokens } from '#domain/events/call-events.js';
import type { Writable } from '#domain/writable.js';
import { isObject, type Json, numberOf, objectOf } from './protocols/json.js';
import { entriesFrom, type Entry, topLevel, valueOf } from './top-level.js';

/** What an engine counted and timed of one call; what it did not say is left out. */
export interface Counted {
  readonly tokens: CallTokens;
  /** Of the prompt's tokens those that went into a cache, which Messages alone count apart. */
  readonly cacheWrittenTokens?: number;
  readonly timings: { readonly promptMs?: number; readonly decodeMs?: number };
}

const figure = (value: unknown): number | undefined => {
  const number = numberOf(value);
  return number !== undefined && number >= 0 ? number : undefined;
};

/**
 * What an answer counts: in its `usage`, in the words of whatever protocol, and in llama.cpp's `timings`, whose `prompt_n`
 * leaves out what was in the cache. Where both say it, `usage` stands.
 */
export function countedIn(answer: Json): Counted {
  const usage = objectOf(answer['usage']);
  const timings = objectOf(answer['timings']);
  const tokens: Writable<CallTokens> = {};
  const times: Writable<Counted['timings']> = {};
  const fromCache = figure(timings['cache_n']);
  const processed = figure(timings['prompt_n']);
  const computed = processed === undefined ? undefined : processed + (fromCache ?? 0);
  const input = objectOf(usage['prompt_tokens_details'] ?? usage['input_tokens_details']);
  const output = objectOf(usage['completion_tokens_details'] ?? usage['output_tokens_details']);

  const prompt = figure(usage['prompt_tokens']) ?? inputOf(usage) ?? computed;
  const cached = figure(usage['cache_read_input_tokens']) ?? figure(input['cached_tokens']) ?? fromCache;
  const said =
    figure(usage['completion_tokens']) ?? figure(usage['output_tokens']) ?? figure(timings['predicted_n']);
  const reasoning = figure(output['reasoning_tokens']);
  const promptMs = figure(timings['prompt_ms']);
  const decodeMs = figure(timings['predicted_ms']);
  const cacheWrittenTokens = figure(usage['cache_creation_input_tokens']);
  if (prompt !== undefined) tokens.prompt = prompt;
  if (cached !== undefined) tokens.cached = cached;
  if (said !== undefined) tokens.output = said;
  if (reasoning !== undefined) tokens.reasoning = reasoning;
  if (promptMs !== undefined) times.promptMs = promptMs;
  if (decodeMs !== undefined) times.decodeMs = decodeMs;
  const counted = { tokens, timings: times };
  return cacheWrittenTokens === undefined ? counted : { ...counted, cacheWrittenTokens };
}

/** Messages count apart what came from the cache and what went into it; Responses count it in. */
function inputOf(usage: Json): number | undefined {
  const input = figure(usage['input_tokens']);
  if (input === undefined) return undefined;
  const cached = figure(usage['cache_read_input_tokens']) ?? 0;
  return input + cached + (figure(usage['cache_creation_input_tokens']) ?? 0);
}

export const NOTHING_COUNTED: Counted = { tokens: {}, timings: {} };

/**
 * Counts along a stream. Its later words are totals again, but need not say all of it: an engine's `message_delta` mostly
 * has no more than the output. So it is the words that are laid over each other, and what they mean is read at the end.
 */
export class Tally {
  #usage: Json = {};
  #timings: Json = {};

  /** Some events say it of the message or the response that they are about. */
  hear(event: Json): void {
    const about = isObject(event['message']) ? event['message'] : objectOf(event['response']);
    this.#usage = laidOver(this.#usage, event['usage'] ?? about['usage']);
    this.#timings = laidOver(this.#timings, event['timings'] ?? about['timings']);
  }

  get counted(): Counted {
    return countedIn({ usage: this.#usage, timings: this.#timings });
  }
}

function laidOver(before: Json, words: unknown): Json {
  if (!isObject(words)) return before;
  const said = Object.entries(words).filter(([, value]) => value !== null);
  return { ...before, ...Object.fromEntries(said) };
}

const USAGE = Buffer.from('"usage"');
const TIMINGS = Buffer.from('"timings"');

/** Reads `usage` and `timings` out of a whole JSON answer without parsing the rest of it. */
export function countAnswer(bytes: Buffer): Counted {
  const found = countedEntries(bytes);
  const said = (name: string): unknown => {
    const entry = found.find(({ key }) => key === name);
    return entry && valueOf(bytes, entry);
  };
  return found.length === 0 ? NOTHING_COUNTED : countedIn({ usage: said('usage'), timings: said('timings') });
}

/** From the first of the two on: they are the last in most answers, behind all the text. */
function countedEntries(bytes: Buffer): readonly Entry[] {
  const usageAt = bytes.indexOf(USAGE);
  const timingsAt = bytes.indexOf(TIMINGS);
  if (usageAt < 0 && timingsAt < 0) return [];
  const from = usageAt < 0 ? timingsAt : timingsAt < 0 ? usageAt : Math.min(usageAt, timingsAt);
  const last = entriesFrom(bytes, from);
  if (last.ok) return last.value.entries;
  const all = topLevel(bytes);
  return all.ok ? all.value.entries : [];
}

import type { CallTokens } from '#domain/events/call-events.js';
import { entriesFrom, type Entry, topLevel, valueOf } from './top-level.js';

/** What an engine counted and timed of one call. */
export interface Counted {
  tokens: CallTokens;
  timings: { promptMs?: number; decodeMs?: number };
}

type Fields = Readonly<Record<string, unknown>>;
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null;
const figure = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;

/**
 * Lays what one answer or chunk says over what is known: `usage` in the words of whatever protocol, and llama.cpp's
 * `timings`, whose `prompt_n` leaves out what was in the cache.
 */
export function count(known: Counted, usage: unknown, timings: unknown): Counted {
  const tokens: { -readonly [K in keyof CallTokens]: CallTokens[K] } = { ...known.tokens };
  const times = { ...known.timings };
  if (isFields(timings)) {
    const processed = figure(timings['prompt_n']);
    const cached = figure(timings['cache_n']);
    const output = figure(timings['predicted_n']);
    const promptMs = figure(timings['prompt_ms']);
    const decodeMs = figure(timings['predicted_ms']);
    if (processed !== undefined) tokens.prompt = processed + (cached ?? 0);
    if (cached !== undefined) tokens.cached = cached;
    if (output !== undefined) tokens.output = output;
    if (promptMs !== undefined) times.promptMs = promptMs;
    if (decodeMs !== undefined) times.decodeMs = decodeMs;
  }
  if (isFields(usage)) {
    const prompt = figure(usage['prompt_tokens']) ?? inputOf(usage);
    const output = figure(usage['completion_tokens']) ?? figure(usage['output_tokens']);
    const promptDetails =
      usage['prompt_tokens_details'] ?? usage['input_tokens_details'] ?? ofMessages(usage);
    const cached = isFields(promptDetails) ? figure(promptDetails['cached_tokens']) : undefined;
    const outputDetails = usage['completion_tokens_details'] ?? usage['output_tokens_details'];
    const reasoning = isFields(outputDetails) ? figure(outputDetails['reasoning_tokens']) : undefined;
    if (prompt !== undefined) tokens.prompt = prompt;
    if (output !== undefined) tokens.output = output;
    if (cached !== undefined) tokens.cached = cached;
    if (reasoning !== undefined) tokens.reasoning = reasoning;
  }
  return { tokens, timings: times };
}

/** Messages count apart what came from the cache; Responses count it in. */
const ofMessages = (usage: Fields): Fields | undefined =>
  usage['cache_read_input_tokens'] === undefined
    ? undefined
    : { cached_tokens: usage['cache_read_input_tokens'] };

function inputOf(usage: Fields): number | undefined {
  const input = figure(usage['input_tokens']);
  if (input === undefined) return undefined;
  const cached = figure(usage['cache_read_input_tokens']) ?? 0;
  return input + cached + (figure(usage['cache_creation_input_tokens']) ?? 0);
}

export const nothingCounted = (): Counted => ({ tokens: {}, timings: {} });

const USAGE = Buffer.from('"usage"');
const TIMINGS = Buffer.from('"timings"');

/** Reads `usage` and `timings` out of a whole JSON answer without parsing the rest of it. */
export function countAnswer(bytes: Buffer): Counted {
  let counted = nothingCounted();
  const found = countedEntries(bytes);
  const timings = found.find(({ key }) => key === 'timings');
  if (timings) counted = count(counted, undefined, valueOf(bytes, timings));
  const usage = found.find(({ key }) => key === 'usage');
  if (usage) counted = count(counted, valueOf(bytes, usage), undefined);
  return counted;
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

import { askEngine, bodyOf } from './engine-http.js';

export interface FillOptions {
  readonly port: number;
  readonly key: string;
  readonly contextTokens: number;
  /** Asked all the while: false ends the filling. */
  readonly goesOn: () => boolean;
}

const WORD = ' a';
const LOOK_MS = 100;
/** An engine that does not get through its own context in so long will not be asked to. */
const LONGEST_MS = 600_000;
const MOST_TRIES = 3;

/**
 * Has an engine read a prompt that fills its context but for a few tokens. How many tokens a text has is the engine's to
 * say: the first try is short, and the next is made to measure.
 * @returns tokens that it held; undefined when it was ended, or the engine refused
 */
export async function fillContext(o: FillOptions): Promise<number | undefined> {
  const wanted = o.contextTokens - 8;
  let words = Math.max(1, Math.floor(o.contextTokens / 4));
  let held: number | undefined;
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const counted = await countedBy(o, words);
    if (counted === undefined) return undefined;
    if (counted.fits) held = counted.tokens;
    if (counted.fits && counted.tokens >= wanted - 8) return counted.tokens;
    // A template and the words beside the repeated ones stay as they are; the rest grows with the words.
    words = Math.max(1, Math.floor((words * wanted) / counted.tokens));
  }
  return held;
}

interface Counted {
  readonly tokens: number;
  readonly fits: boolean;
}

async function countedBy(o: FillOptions, words: number): Promise<Counted | undefined> {
  const reply = await ask(o, {
    model: 'fill',
    prompt: WORD.repeat(words),
    max_tokens: 1,
    cache_prompt: false,
  });
  if (!reply) return undefined;
  const { usage, error } = reply;
  const prompt = numberIn(usage, 'prompt_tokens');
  if (prompt !== undefined) return { tokens: prompt, fits: true };
  const tooMany = numberIn(error, 'n_prompt_tokens');
  return tooMany === undefined ? undefined : { tokens: tooMany, fits: false };
}

function numberIn(value: unknown, name: string): number | undefined {
  const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
  return typeof found === 'number' && found > 0 ? found : undefined;
}

async function ask(o: FillOptions, body: unknown): Promise<Record<string, unknown> | undefined> {
  const leaving = new AbortController();
  // Leaving frees the engine's slot at once.
  const look = setInterval(() => {
    if (!o.goesOn()) leaving.abort();
  }, LOOK_MS);
  const { port, key } = o;
  const { signal } = leaving;
  const reply = await askEngine(port, '/v1/completions', {
    key,
    method: 'POST',
    body,
    timeoutMs: LONGEST_MS,
    signal,
  });
  clearInterval(look);
  // No answer, or no JSON: an engine that died, or one that says something else; the caller looks at the process.
  return reply && bodyOf(reply);
}

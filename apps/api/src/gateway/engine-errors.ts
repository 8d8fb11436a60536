import { type BerthError, berthError } from '#domain/errors.js';
import { whatIsMalformed } from './call-body.js';
import { topLevel } from './top-level.js';

/** An engine's refusal, as far as it says one. */
interface Said {
  readonly message: string;
  readonly type: string | undefined;
  readonly promptTokens: number | undefined;
  readonly contextTokens: number | undefined;
  readonly param: string | undefined;
}

/** The two sentences that agents know; other words for it go unnoticed. */
export const contextTooLong = (
  contextTokens: number,
  promptTokens: number,
  param: 'messages' | 'prompt' | 'input' | 'documents' = 'messages',
): BerthError =>
  berthError(
    'context_length_exceeded',
    `This model's maximum context length is ${contextTokens} tokens. ` +
      `However, your ${param} resulted in ${promptTokens} tokens.`,
    { param, details: { contextTokens, promptTokens } },
  );

/** The field of a body that is its prompt. */
function promptField(body: Buffer): 'messages' | 'prompt' | 'input' | 'documents' {
  const scanned = topLevel(body);
  const keys = scanned.ok ? scanned.value.entries.map(({ key }) => key) : [];
  return (
    (['messages', 'prompt', 'input', 'documents'] as const).find((name) => keys.includes(name)) ?? 'messages'
  );
}

/** Words in which engines answer 500 for what is the caller's fault; every SDK would ask again for a 500. */
const CALLERS_FAULT =
  /parse|json|jinja|template|image|audio|multimodal|mmproj|unsupported|not supported|invalid|must (be|have|contain|not)|missing|expected|empty|required|unknown (field|param|argument)|failed to tokenize|input/i;

/**
 * An engine's error answer as the caller gets it. Engines answer 500 and 501 for bad requests, which every client
 * would repeat, and have their own words for a prompt that is too long.
 * @param body the request's bytes, as they came
 */
export function mapEngineError(status: number, answer: Buffer, body: Buffer): BerthError {
  const said = readAnswer(answer);
  const words = said.message;
  if (said.type === 'exceed_context_size_error' || /exceeds? the available context size/i.test(words)) {
    const { contextTokens, promptTokens } = said;
    if (contextTokens !== undefined && promptTokens !== undefined) {
      return contextTooLong(contextTokens, promptTokens, promptField(body));
    }
    return berthError('context_length_exceeded', `This prompt is too long for the model's context: ${words}`);
  }
  const param = said.param === undefined ? {} : { param: said.param };
  if (status === 501) return berthError('invalid_request', `The model cannot do this: ${words}`, param);
  if (status === 404) {
    return berthError('invalid_request', `The engine that serves this model has no such endpoint: ${words}`);
  }
  if (status === 401 || status === 403) {
    return berthError('engine_failed', `The engine did not accept Berth's key: ${words}`);
  }
  // Engines with a queue of their own say so: asking again helps, and nothing is wrong with the request.
  if (status === 429) return berthError('queue_full', `The engine takes no more calls now: ${words}`);
  if (status < 500) return berthError('invalid_request', words, param);
  const malformed = whatIsMalformed(body);
  if (malformed !== undefined)
    return berthError('invalid_request', `The body is not valid JSON: ${malformed}.`);
  if (status === 500 && CALLERS_FAULT.test(words)) return berthError('invalid_request', words, param);
  return berthError('engine_failed', `The engine answered ${status}: ${words}`);
}

function readAnswer(answer: Buffer): Said {
  const nothing = { type: undefined, promptTokens: undefined, contextTokens: undefined, param: undefined };
  const text = answer.toString('utf8').trim();
  const fallback = text === '' ? 'it gave no reason' : text.slice(0, 500);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // Not JSON: its words as they stand.
    return { message: fallback, ...nothing };
  }
  const error = isRecord(parsed) ? (parsed['error'] ?? parsed['detail'] ?? parsed) : parsed;
  if (typeof error === 'string') return { message: error, ...nothing };
  if (!isRecord(error)) return { message: fallback, ...nothing };
  const textOf = (name: string) => (typeof error[name] === 'string' ? error[name] : undefined);
  const numberOf = (name: string) => (typeof error[name] === 'number' ? error[name] : undefined);
  return {
    message: textOf('message') ?? fallback,
    type: textOf('type'),
    promptTokens: numberOf('n_prompt_tokens'),
    contextTokens: numberOf('n_ctx'),
    param: textOf('param'),
  };
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

import { badRequest } from './failure.js';

/** What clients send, read strictly where a wrong value would be misunderstood; unknown and null fields are ignored. */

export type Json = Record<string, unknown>;

export interface ChatMessage {
  readonly role: string;
  readonly content: string;
  readonly [field: string]: unknown;
}

export interface SamplingRequest {
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly maxTokens?: number;
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly seed?: number;
  readonly stop: readonly string[];
  readonly format: ResponseFormat;
}

export type ResponseFormat =
  { readonly kind: 'text' } | { readonly kind: 'json' } | { readonly kind: 'schema'; readonly schema: Json };

export interface ChatRequest extends SamplingRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly unknown[];
  readonly templateArguments: Json;
}

export type Prompt = string | readonly number[];

export interface CompletionRequest extends SamplingRequest {
  readonly prompts: readonly Prompt[];
}

export interface EmbeddingRequest {
  readonly inputs: readonly Prompt[];
  readonly base64: boolean;
}

export interface RerankRequest {
  readonly query: string;
  readonly documents: readonly string[];
  readonly topN: number;
}

export function asObject(body: unknown): Json {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw badRequest('The body must be a JSON object.');
  }
  return body as Json;
}

function number(body: Json, name: string, min: number, max: number): number | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value) || value < min || value > max) {
    throw badRequest(`"${name}" must be a number from ${min} to ${max}.`, name);
  }
  return value;
}

function whole(body: Json, name: string, min: number, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const value = number(body, name, min, max);
  if (value !== undefined && !Number.isInteger(value)) {
    throw badRequest(`"${name}" must be a whole number.`, name);
  }
  return value;
}

function stops(body: Json): readonly string[] {
  const stop = body['stop'];
  if (stop === undefined || stop === null) return [];
  const list: readonly unknown[] = Array.isArray(stop) ? stop : [stop];
  return list
    .map((text) => {
      if (typeof text !== 'string')
        throw badRequest('"stop" must be a string or an array of strings.', 'stop');
      return text;
    })
    .filter((text) => text !== '');
}

function responseFormat(body: Json): ResponseFormat {
  const format = body['response_format'];
  if (format === undefined || format === null) return { kind: 'text' };
  const { type, json_schema: named, schema: bare } = asObjectOf(format, 'response_format');
  if (type === 'text') return { kind: 'text' };
  if (type === 'json_object' && (bare === undefined || bare === null)) return { kind: 'json' };
  if (type === 'json_object') return { kind: 'schema', schema: asObjectOf(bare, 'response_format.schema') };
  if (type === 'json_schema') {
    const schema = asObjectOf(named, 'response_format.json_schema')['schema'];
    return { kind: 'schema', schema: asObjectOf(schema, 'response_format.json_schema.schema') };
  }
  throw badRequest('"response_format.type" must be text, json_object or json_schema.', 'response_format');
}

function asObjectOf(value: unknown, name: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badRequest(`"${name}" must be an object.`, name);
  }
  return value as Json;
}

/** Defaults are llama-server's, so that a model answers alike on either engine. */
export function readSampling(body: Json): SamplingRequest {
  const n = whole(body, 'n', 1);
  if (n !== undefined && n > 1)
    throw badRequest('This engine gives one choice per request: "n" must be 1.', 'n');
  const maxTokens = whole(body, 'max_completion_tokens', -1) ?? whole(body, 'max_tokens', -1);
  const options = body['stream_options'];
  const seed = whole(body, 'seed', Number.MIN_SAFE_INTEGER);
  return {
    stream: body['stream'] === true,
    includeUsage:
      typeof options === 'object' && options !== null && (options as Json)['include_usage'] === true,
    ...(maxTokens === undefined || maxTokens < 0 ? {} : { maxTokens }),
    temperature: number(body, 'temperature', 0, 100) ?? 0.8,
    topP: number(body, 'top_p', 0, 1) ?? 0.95,
    topK: whole(body, 'top_k', 0) ?? 40,
    minP: number(body, 'min_p', 0, 1) ?? 0.05,
    frequencyPenalty: number(body, 'frequency_penalty', -2, 2) ?? 0,
    presencePenalty: number(body, 'presence_penalty', -2, 2) ?? 0,
    ...(seed === undefined || seed < 0 ? {} : { seed: seed % 2 ** 32 }),
    stop: stops(body),
    format: responseFormat(body),
  };
}

export function readChat(body: Json): ChatRequest {
  const messages = body['messages'];
  if (!Array.isArray(messages) || messages.length === 0) {
    throw badRequest('"messages" must be an array with at least one message.', 'messages');
  }
  const tools = body['tools'];
  if (tools !== undefined && tools !== null && !Array.isArray(tools)) {
    throw badRequest('"tools" must be an array.', 'tools');
  }
  const given = body['chat_template_kwargs'];
  return {
    ...readSampling(body),
    messages: messages.map(message),
    tools: Array.isArray(tools) && body['tool_choice'] !== 'none' ? (tools as readonly unknown[]) : [],
    templateArguments: given === undefined || given === null ? {} : asObjectOf(given, 'chat_template_kwargs'),
  };
}

function message(value: unknown, index: number): ChatMessage {
  const where = `messages[${index}]`;
  const source = asObjectOf(value, where);
  const role = source['role'];
  if (typeof role !== 'string' || role === '') throw badRequest(`"${where}.role" must be a string.`, where);
  return {
    ...source,
    // Templates of open models know no developer; it is the newer name of system.
    role: role === 'developer' ? 'system' : role,
    content: content(source['content'], where),
    ...(Array.isArray(source['tool_calls'])
      ? { tool_calls: source['tool_calls'].map((call: unknown) => withParsedArguments(call, where)) }
      : {}),
  };
}

function content(value: unknown, where: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) {
    throw badRequest(`"${where}.content" must be a string or an array of parts.`, where);
  }
  return value
    .map((part: unknown) => {
      const { type, text } = asObjectOf(part, `${where}.content`);
      if (typeof text !== 'string' || (type !== 'text' && type !== 'input_text')) {
        throw badRequest(
          `"${where}.content" has a part of type ${JSON.stringify(type)}; this engine reads text only.`,
          where,
        );
      }
      return text;
    })
    .join('\n');
}

/** Templates read the arguments as an object; clients send them as text. */
function withParsedArguments(call: unknown, where: string): unknown {
  const source = asObjectOf(call, `${where}.tool_calls`);
  const called = source['function'];
  if (typeof called !== 'object' || called === null) return source;
  const given = (called as Json)['arguments'];
  if (typeof given !== 'string') return source;
  try {
    const parsed: unknown = JSON.parse(given);
    return { ...source, function: { ...called, arguments: parsed } };
  } catch {
    // A model's own malformed call, sent back to it: the template prints the text as it stands.
    return source;
  }
}

export function readCompletion(body: Json): CompletionRequest {
  for (const name of ['echo', 'suffix']) {
    if (body[name] !== undefined && body[name] !== null && body[name] !== false && body[name] !== '') {
      throw badRequest(`This engine does not support "${name}".`, name);
    }
  }
  const bestOf = whole(body, 'best_of', 1);
  if (bestOf !== undefined && bestOf > 1)
    throw badRequest('This engine does not support "best_of".', 'best_of');
  return { ...readSampling(body), prompts: prompts(body, 'prompt', true) };
}

export function readEmbedding(body: Json, vectorSize: number): EmbeddingRequest {
  const format = body['encoding_format'];
  if (format !== undefined && format !== null && format !== 'float' && format !== 'base64') {
    throw badRequest('"encoding_format" must be float or base64.', 'encoding_format');
  }
  const dimensions = whole(body, 'dimensions', 1);
  if (dimensions !== undefined && dimensions !== vectorSize) {
    throw badRequest(`This model gives vectors of ${vectorSize} values, not ${dimensions}.`, 'dimensions');
  }
  return { inputs: prompts(body, 'input', false), base64: format === 'base64' };
}

/** One text, several, one list of token ids, or several. */
function prompts(body: Json, name: string, emptyTextAllowed: boolean): readonly Prompt[] {
  const value = body[name];
  const shape = badRequest(`"${name}" must be a text, an array of texts, or token ids, and not empty.`, name);
  const isTokens = (v: unknown): v is number[] =>
    Array.isArray(v) && v.length > 0 && v.every((token) => Number.isInteger(token) && Number(token) >= 0);
  const one = (v: unknown): Prompt => {
    if (typeof v === 'string' && (emptyTextAllowed || v !== '')) return v;
    if (isTokens(v)) return v;
    throw shape;
  };
  if (typeof value === 'string' || isTokens(value)) return [one(value)];
  if (!Array.isArray(value) || value.length === 0) throw shape;
  return value.map(one);
}

export function readRerank(body: Json): RerankRequest {
  const { query, documents } = body;
  if (typeof query !== 'string' || query === '') throw badRequest('"query" must be a text.', 'query');
  if (!Array.isArray(documents) || documents.length === 0) {
    throw badRequest('"documents" must be an array with at least one text.', 'documents');
  }
  const texts = documents.map((document: unknown) => {
    const text = typeof document === 'object' && document !== null ? (document as Json)['text'] : document;
    if (typeof text !== 'string') throw badRequest('Each of "documents" must be a text.', 'documents');
    return text;
  });
  return { query, documents: texts, topN: whole(body, 'top_n', 1) ?? texts.length };
}

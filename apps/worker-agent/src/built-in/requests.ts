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
  /** The prompt's tokens are told with the first frame too; vLLM's name, which tells them with every one. */
  readonly usageAtOnce: boolean;
  readonly maxTokens?: number;
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly seed?: number;
  /** 1: off. */
  readonly repeatPenalty: number;
  /** How many of the last tokens are penalised; -1: all. */
  readonly repeatLastTokens: number;
  readonly stop: readonly string[];
  readonly format: ResponseFormat;
  /** Answers per prompt. */
  readonly choices: number;
  /** How many of the likeliest tokens are told with each; absent: no log probabilities. */
  readonly topLogprobs?: number;
  /** Added to the logits of tokens; -Infinity forbids one. */
  readonly bias: ReadonlyMap<number, number>;
}

export type ResponseFormat =
  | { readonly kind: 'text' }
  | { readonly kind: 'json' }
  | { readonly kind: 'schema'; readonly schema: Json; readonly field: string }
  | { readonly kind: 'grammar'; readonly text: string };

export interface ChatTool {
  readonly name: string;
  readonly parameters?: Json;
}

export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

export interface ChatRequest extends SamplingRequest {
  readonly messages: readonly ChatMessage[];
  /** As they came: the template prints them. */
  readonly tools: readonly unknown[];
  readonly callable: readonly ChatTool[];
  readonly toolChoice: ToolChoice;
  readonly parallelCalls: boolean;
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
  const { grammar, json_schema: own } = body;
  if (grammar !== undefined && grammar !== null && grammar !== '') {
    if (typeof grammar !== 'string') throw badRequest('"grammar" must be a text in GBNF.', 'grammar');
    return { kind: 'grammar', text: grammar };
  }
  if (own !== undefined && own !== null)
    return { kind: 'schema', schema: asObjectOf(own, 'json_schema'), field: 'json_schema' };
  const format = body['response_format'];
  if (format === undefined || format === null) return { kind: 'text' };
  const { type, json_schema: named, schema: bare } = asObjectOf(format, 'response_format');
  if (type === 'text') return { kind: 'text' };
  if (type === 'json_object' && (bare === undefined || bare === null)) return { kind: 'json' };
  if (type === 'json_object')
    return { kind: 'schema', schema: asObjectOf(bare, 'response_format.schema'), field: 'response_format' };
  if (type === 'json_schema') {
    const schema = asObjectOf(named, 'response_format.json_schema')['schema'];
    return {
      kind: 'schema',
      schema: asObjectOf(schema, 'response_format.json_schema.schema'),
      field: 'response_format',
    };
  }
  throw badRequest('"response_format.type" must be text, json_object or json_schema.', 'response_format');
}

function asObjectOf(value: unknown, name: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badRequest(`"${name}" must be an object.`, name);
  }
  return value as Json;
}

/** What other engines do and this one cannot, with the value that asks for nothing. */
const NEUTRAL: Readonly<Record<string, readonly unknown[]>> = {
  functions: [],
  function_call: ['none', 'auto'],
  web_search_options: [],
  audio: [],
  mirostat: [0],
  typical_p: [1],
  tfs_z: [1],
  dynatemp_range: [0],
  xtc_probability: [0],
  dry_multiplier: [0],
  ignore_eos: [false],
  lora: [],
  adapter: [],
  n_probs: [0],
  guided_json: [],
  guided_regex: [],
  guided_grammar: [],
};

/** @throws RequestError for a field that asks for what this engine would have to leave out without a word. */
function refuseUnsupported(body: Json): void {
  for (const [name, neutral] of Object.entries(NEUTRAL)) {
    const value = body[name];
    if (value === undefined || value === null || neutral.includes(value)) continue;
    if (Array.isArray(value) && value.length === 0) continue;
    throw badRequest(`This engine does not support "${name}".`, name);
  }
}

const MOST_CHOICES = 16;
/** OpenAI's bounds of a bias: at them a token is as good as forbidden, or alone. */
const MOST_BIAS = 100;

function bias(body: Json): ReadonlyMap<number, number> {
  const given = body['logit_bias'];
  const out = new Map<number, number>();
  if (given === undefined || given === null) return out;
  const shape = () =>
    badRequest(
      `"logit_bias" must be an object of token ids with numbers from -${MOST_BIAS} to ${MOST_BIAS}.`,
      'logit_bias',
    );
  // llama.cpp takes pairs as well.
  const pairs: readonly unknown[] = Array.isArray(given)
    ? given
    : Object.entries(asObjectOf(given, 'logit_bias'));
  for (const pair of pairs) {
    const [token, value] = Array.isArray(pair) ? (pair as unknown[]) : [];
    const id = typeof token === 'string' && /^\d+$/.test(token) ? Number(token) : token;
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0) throw shape();
    if (value === false) out.set(id, -Infinity);
    else if (typeof value === 'number' && Math.abs(value) <= MOST_BIAS) {
      out.set(id, value === -MOST_BIAS ? -Infinity : value);
    } else throw shape();
  }
  return out;
}

/** Chat asks by a flag and a number beside it, plain completions by the number alone. */
function topLogprobs(body: Json): number | undefined {
  const { logprobs } = body;
  if (typeof logprobs === 'number') return whole(body, 'logprobs', 0, 20);
  if (logprobs !== undefined && logprobs !== null && typeof logprobs !== 'boolean') {
    throw badRequest('"logprobs" must be true, false, or in plain completions a number.', 'logprobs');
  }
  const top = whole(body, 'top_logprobs', 0, 20);
  if (logprobs === true) return top ?? 0;
  if (top !== undefined && top > 0)
    throw badRequest('"top_logprobs" needs "logprobs": true.', 'top_logprobs');
  return undefined;
}

/** Defaults are llama-server's, so that a model answers alike on either engine. */
export function readSampling(body: Json): SamplingRequest {
  refuseUnsupported(body);
  const top = topLogprobs(body);
  const maxTokens = whole(body, 'max_completion_tokens', -1) ?? whole(body, 'max_tokens', -1);
  const given = body['stream_options'];
  const options = typeof given === 'object' && given !== null ? (given as Json) : {};
  const seed = whole(body, 'seed', Number.MIN_SAFE_INTEGER);
  return {
    stream: body['stream'] === true,
    includeUsage: options['include_usage'] === true,
    usageAtOnce: options['continuous_usage_stats'] === true,
    ...(maxTokens === undefined || maxTokens < 0 ? {} : { maxTokens }),
    temperature: number(body, 'temperature', 0, 100) ?? 0.8,
    topP: number(body, 'top_p', 0, 1) ?? 0.95,
    topK: whole(body, 'top_k', 0) ?? 40,
    minP: number(body, 'min_p', 0, 1) ?? 0.05,
    frequencyPenalty: number(body, 'frequency_penalty', -2, 2) ?? 0,
    presencePenalty: number(body, 'presence_penalty', -2, 2) ?? 0,
    ...(seed === undefined || seed < 0 ? {} : { seed: seed % 2 ** 32 }),
    repeatPenalty: number(body, 'repeat_penalty', 0, 10) ?? 1,
    repeatLastTokens: whole(body, 'repeat_last_n', -1) ?? 64,
    stop: stops(body),
    format: responseFormat(body),
    choices: whole(body, 'n', 1, MOST_CHOICES) ?? 1,
    ...(top === undefined ? {} : { topLogprobs: top }),
    bias: bias(body),
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
  const callable = Array.isArray(tools) ? tools.map(tool) : [];
  const choice = toolChoice(body, callable);
  const sampling = readSampling(body);
  if (choice !== 'auto' && choice !== 'none' && sampling.format.kind !== 'text') {
    throw badRequest('A call that is required and a response format cannot both hold.', 'response_format');
  }
  const parallel = body['parallel_tool_calls'];
  if (parallel !== undefined && parallel !== null && typeof parallel !== 'boolean') {
    throw badRequest('"parallel_tool_calls" must be true or false.', 'parallel_tool_calls');
  }
  return {
    ...sampling,
    messages: messages.map(message),
    tools: Array.isArray(tools) && choice !== 'none' ? (tools as readonly unknown[]) : [],
    callable,
    toolChoice: choice,
    parallelCalls: parallel !== false,
    templateArguments: given === undefined || given === null ? {} : asObjectOf(given, 'chat_template_kwargs'),
  };
}

function tool(value: unknown, index: number): ChatTool {
  const where = `tools[${index}]`;
  const called = asObjectOf(asObjectOf(value, where)['function'], `${where}.function`);
  const { name, parameters } = called;
  if (typeof name !== 'string' || name === '') {
    throw badRequest(`"${where}.function.name" must be a text.`, 'tools');
  }
  return parameters === undefined || parameters === null
    ? { name }
    : { name, parameters: asObjectOf(parameters, `${where}.function.parameters`) };
}

function toolChoice(body: Json, tools: readonly ChatTool[]): ToolChoice {
  const choice = body['tool_choice'];
  if (choice === undefined || choice === null) return 'auto';
  if (choice === 'auto' || choice === 'none') return choice;
  const shape = () =>
    badRequest('"tool_choice" must be auto, none, required, or name a function of "tools".', 'tool_choice');
  if (choice === 'required') {
    if (tools.length === 0)
      throw badRequest('"tool_choice" is required and there are no "tools".', 'tool_choice');
    return 'required';
  }
  if (typeof choice !== 'object') throw shape();
  const { name } = asObjectOf(asObjectOf(choice, 'tool_choice')['function'], 'tool_choice.function');
  if (typeof name !== 'string' || !tools.some((each) => each.name === name)) throw shape();
  return { name };
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

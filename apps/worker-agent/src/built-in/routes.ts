import { randomUUID } from 'node:crypto';
import type { LlamaGrammar, Token } from 'node-llama-cpp';
import { type AnswerHead, type AnswerShape, CHAT, COMPLETION, sumGenerated, usageOf } from './answers.js';
import { withBeginning } from './chat-prompt.js';
import { badRequest, notSupported, tooLong } from './failure.js';
import { generate, type Generated, type Generator } from './generate.js';
import type { Loaded } from './loaded.js';
import {
  asObject,
  type Prompt,
  readChat,
  readCompletion,
  readEmbedding,
  readRerank,
  type ResponseFormat,
  type SamplingRequest,
} from './requests.js';

/** Where a streamed answer goes; resolves when the client can take more. */
export interface FrameWriter {
  send(frame: object): Promise<void>;
  done(): void;
}

export interface Exchange {
  readonly body: unknown;
  /** Aborted when the client left, or the process stops. */
  readonly signal: AbortSignal;
  /** Begins a stream; called at most once, and then nothing is returned. */
  stream(): FrameWriter;
}

/** An answer to send whole; undefined when it was streamed. */
export type Answer = object | undefined;

export interface RouteContext {
  readonly loaded: Loaded;
  readonly alias: string;
  readonly microBatch: number;
  readonly fingerprint: string;
}

export function chat(context: RouteContext, exchange: Exchange): Promise<Answer> {
  const { serving } = context.loaded;
  if (serving.kind !== 'chat') throw notSupported(serving.kind, 'chat completions');
  const request = readChat(asObject(exchange.body));
  return respond(context, exchange, CHAT, request, [serving.prompt.tokens(request)]);
}

export function completion(context: RouteContext, exchange: Exchange): Promise<Answer> {
  const { serving, model } = context.loaded;
  if (serving.kind !== 'chat') throw notSupported(serving.kind, 'completions');
  const request = readCompletion(asObject(exchange.body));
  const prompts = request.prompts.map((prompt) =>
    typeof prompt === 'string'
      ? withBeginning(model, model.tokenize(prompt, true))
      : tokenIds(context.loaded, prompt),
  );
  return respond(context, exchange, COMPLETION, request, prompts);
}

async function respond(
  context: RouteContext,
  exchange: Exchange,
  shape: AnswerShape,
  request: SamplingRequest,
  prompts: readonly (readonly Token[])[],
): Promise<Answer> {
  const { loaded } = context;
  if (loaded.serving.kind !== 'chat') throw notSupported(loaded.serving.kind, 'text generation');
  for (const prompt of prompts) {
    if (prompt.length >= loaded.contextTokens) throw tooLong(prompt.length, loaded.contextTokens);
  }
  const head: AnswerHead = {
    id: shape.idPrefix + randomUUID(),
    created: Math.floor(Date.now() / 1000),
    model: context.alias,
    system_fingerprint: context.fingerprint,
  };
  const engine: Generator = {
    model: loaded.model,
    slots: loaded.serving.slots,
    contextTokens: loaded.contextTokens,
    microBatch: context.microBatch,
  };
  const grammar = await grammarFor(loaded, request.format);

  if (!request.stream) {
    const choices: { text: string; reason: string }[] = [];
    const parts: Generated[] = [];
    for (const prompt of prompts) {
      let text = '';
      const part = await generate(engine, prompt, request, grammar, exchange.signal, (piece) => {
        text += piece;
      });
      choices.push({ text, reason: part.finishReason });
      parts.push(part);
    }
    const sum = sumGenerated(parts);
    return shape.whole(head, choices, usageOf(sum), sum.timings);
  }

  const frames = exchange.stream();
  const opening = shape.opening(head);
  if (opening) await frames.send(opening);
  const parts: Generated[] = [];
  for (const [index, prompt] of prompts.entries()) {
    const part = await generate(engine, prompt, request, grammar, exchange.signal, (piece) =>
      frames.send(shape.text(head, index, piece)),
    );
    parts.push(part);
    await frames.send(shape.finish(head, index, part.finishReason, part.timings));
  }
  const sum = sumGenerated(parts);
  if (request.includeUsage) await frames.send(shape.usage(head, usageOf(sum), sum.timings));
  frames.done();
  return undefined;
}

async function grammarFor(loaded: Loaded, format: ResponseFormat): Promise<LlamaGrammar | undefined> {
  if (format.kind === 'text') return undefined;
  if (format.kind === 'json') return loaded.llama.getGrammarFor('json');
  try {
    // The library infers a type from a schema that is known when it compiles; this one is checked when it runs.
    return await loaded.llama.createGrammarForJsonSchema(format.schema as { readonly type: 'object' });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw badRequest(`The JSON schema cannot be turned into a grammar: ${why}`, 'response_format');
  }
}

function tokenIds(loaded: Loaded, ids: readonly number[]): Token[] {
  const count = loaded.model.fileInfo.metadata.tokenizer.ggml.tokens.length;
  for (const id of ids) {
    // The engine aborts on a token outside of its vocabulary.
    if (id >= count) throw badRequest(`Token ${id} is outside of the vocabulary of ${count}.`);
  }
  return ids.map((id) => id as Token);
}

export async function embeddings(context: RouteContext, exchange: Exchange): Promise<Answer> {
  const { serving, model, contextTokens } = context.loaded;
  if (serving.kind !== 'embedding') throw notSupported(serving.kind, 'embeddings');
  const request = readEmbedding(asObject(exchange.body), model.embeddingVectorSize);
  const tokens = (input: Prompt): Token[] =>
    typeof input === 'string' ? model.tokenize(input) : tokenIds(context.loaded, input);
  const inputs = request.inputs.map((input) => {
    const list = tokens(input);
    const length = serving.embedding.calculateInputLength([...list]);
    if (list.length === 0) throw badRequest('An input has no tokens.', 'input');
    if (length >= contextTokens) throw tooLong(length, contextTokens);
    return { list, length };
  });
  const data: object[] = [];
  for (const [index, { list }] of inputs.entries()) {
    exchange.signal.throwIfAborted();
    const { vector } = await serving.embedding.getEmbeddingFor([...list]);
    const values = unitLength(vector);
    data.push({
      object: 'embedding',
      index,
      embedding: request.base64 ? Buffer.from(Float32Array.from(values).buffer).toString('base64') : values,
    });
  }
  const promptTokens = inputs.reduce((sum, { length }) => sum + length, 0);
  return {
    object: 'list',
    model: context.alias,
    data,
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
  };
}

/** Callers compare by dot product, as llama-server's and OpenAI's vectors allow. */
function unitLength(vector: readonly number[]): readonly number[] {
  const length = Math.hypot(...vector);
  return length === 0 ? vector : vector.map((value) => value / length);
}

export async function rerank(context: RouteContext, exchange: Exchange): Promise<Answer> {
  const { serving, contextTokens } = context.loaded;
  if (serving.kind !== 'rerank') throw notSupported(serving.kind, 'reranking');
  const { query, documents, topN } = readRerank(asObject(exchange.body));
  let promptTokens = 0;
  for (const document of documents) {
    const length = serving.ranking.calculateInputLength(query, document);
    if (length >= contextTokens) throw tooLong(length, contextTokens);
    promptTokens += length;
  }
  const results: { index: number; relevance_score: number }[] = [];
  for (const [index, document] of documents.entries()) {
    exchange.signal.throwIfAborted();
    results.push({ index, relevance_score: await serving.ranking.rank(query, document) });
  }
  results.sort((a, b) => b.relevance_score - a.relevance_score);
  return {
    object: 'list',
    model: context.alias,
    results: results.slice(0, topN),
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
  };
}

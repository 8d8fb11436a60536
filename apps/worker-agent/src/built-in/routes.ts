import type { Token } from 'node-llama-cpp';
import { CHAT, COMPLETION } from './answers.js';
import { withBeginning } from './chat-prompt.js';
import { badRequest, notSupported, tooLong } from './failure.js';
import { callGrammar } from './grammars.js';
import type { Loaded } from './loaded.js';
import { asObject, type Prompt, readChat, readCompletion, readEmbedding, readRerank } from './requests.js';
import { respond, type Answer, type Exchange, type RouteContext } from './respond.js';

export async function chat(context: RouteContext, exchange: Exchange): Promise<Answer> {
  const { serving, llama } = context.loaded;
  if (serving.kind !== 'chat') throw notSupported(serving.kind, 'chat completions');
  const request = readChat(asObject(exchange.body));
  const { tools, callable, toolChoice, parallelCalls } = request;
  const grammar = await callGrammar(llama, callable, toolChoice, parallelCalls);
  return respond(context, exchange, CHAT, request, [serving.prompt.tokens(request)], {
    given: tools.length > 0,
    ...(grammar === undefined ? {} : { grammar }),
  });
}

/** What a chat would take of the context, without a word of answer. */
export function countTokens(context: RouteContext, exchange: Exchange): Promise<Answer> {
  const { serving } = context.loaded;
  if (serving.kind !== 'chat') throw notSupported(serving.kind, 'chat completions');
  const { length } = serving.prompt.tokens(readChat(asObject(exchange.body)));
  return Promise.resolve({ object: 'response.input_tokens', input_tokens: length });
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
  return respond(context, exchange, COMPLETION, request, prompts, { given: false });
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

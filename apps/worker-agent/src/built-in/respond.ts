import { randomUUID } from 'node:crypto';
import type { LlamaGrammar, Token } from 'node-llama-cpp';
import { type AnswerHead, type AnswerShape, type Choice, sumGenerated, usageOf } from './answers.js';
import { badRequest, notSupported, tooLong } from './failure.js';
import { generate, type Generated, type Generator, type TokenLogprob } from './generate.js';
import { formatGrammar } from './grammars.js';
import type { Loaded } from './loaded.js';
import type { SamplingRequest } from './requests.js';
import { type Piece, type ToolCall, ToolCallText } from './tool-calls.js';

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

export interface Tools {
  /** Holds the answer to calls; absent where the model may choose. */
  readonly grammar?: LlamaGrammar;
  /** Calls are looked for only where tools were given: elsewhere the same marks are the model's text. */
  readonly given: boolean;
}

/** Generates for each prompt, as many answers as are asked for, and gives them in one shape, whole or streamed. */
export async function respond(
  context: RouteContext,
  exchange: Exchange,
  shape: AnswerShape,
  request: SamplingRequest,
  prompts: readonly (readonly Token[])[],
  tools: Tools,
): Promise<Answer> {
  const { loaded } = context;
  if (loaded.serving.kind !== 'chat') throw notSupported(loaded.serving.kind, 'text generation');
  const vocabulary = loaded.model.fileInfo.metadata.tokenizer.ggml.tokens.length;
  for (const token of request.bias.keys()) {
    if (token >= vocabulary) {
      throw badRequest(`Token ${token} is outside of the vocabulary of ${vocabulary}.`, 'logit_bias');
    }
  }
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
  const grammar = tools.grammar ?? (await formatGrammar(loaded.llama, request.format));
  const promptOf = (index: number) => prompts[Math.floor(index / request.choices)] ?? [];
  const run = async (index: number, onPiece: OnPiece): Promise<{ part: Generated; reason: string }> => {
    const prompt = promptOf(index);
    const sampled = withOwnSeed(request, index % request.choices);
    const reader = tools.given ? new ToolCallText() : undefined;
    let calls = 0;
    const part = await generate(engine, prompt, sampled, grammar, exchange.signal, async (text, logprobs) => {
      if (!reader) {
        await onPiece({ kind: 'text', text }, logprobs);
        return;
      }
      for (const piece of reader.push(text)) {
        if (piece.kind === 'call') calls += 1;
        await onPiece(piece, logprobs);
      }
    });
    for (const piece of reader?.flush() ?? []) await onPiece(piece, []);
    return { part, reason: calls > 0 && part.finishReason === 'stop' ? 'tool_calls' : part.finishReason };
  };

  const answers = prompts.length * request.choices;
  if (!request.stream) return whole(head, shape, answers, run);
  const frames = exchange.stream();
  const parts: Generated[] = [];
  for (let index = 0; index < answers; index += 1) {
    const opening = shape.opening(head, index);
    if (opening) {
      const usage = { prompt_tokens: promptOf(index).length };
      await frames.send(request.usageAtOnce ? { ...opening, usage } : opening);
    }
    let callIndex = 0;
    const { part, reason } = await run(index, (piece, logprobs) =>
      frames.send(
        piece.kind === 'text'
          ? shape.text(head, index, piece.text, logprobs)
          : shape.call(head, index, callIndex++, piece.call),
      ),
    );
    parts.push(part);
    await frames.send(shape.finish(head, index, { reason, ...stopOf(part) }, part.timings));
  }
  const sum = sumGenerated(parts);
  if (request.includeUsage) await frames.send(shape.usage(head, usageOf(sum), sum.timings));
  frames.done();
  return undefined;
}

type OnPiece = (piece: Piece, logprobs: readonly TokenLogprob[]) => void | Promise<void>;
type Run = (index: number, onPiece: OnPiece) => Promise<{ part: Generated; reason: string }>;

async function whole(head: AnswerHead, shape: AnswerShape, answers: number, run: Run): Promise<Answer> {
  const parts: Generated[] = [];
  const choices: Choice[] = [];
  for (let index = 0; index < answers; index += 1) {
    let text = '';
    const calls: ToolCall[] = [];
    const logprobs: TokenLogprob[] = [];
    const { part, reason } = await run(index, (piece, told) => {
      if (piece.kind === 'text') {
        text += piece.text;
        logprobs.push(...told);
      } else calls.push(piece.call);
    });
    choices.push({ text, reason, calls, logprobs, ...stopOf(part) });
    parts.push(part);
  }
  const sum = sumGenerated(parts);
  return shape.whole(head, choices, usageOf(sum), sum.timings);
}

const stopOf = ({ stopString }: Generated) => (stopString === undefined ? {} : { stopString });

/** Several answers to one prompt with one seed would be the same answer several times. */
const withOwnSeed = (request: SamplingRequest, choice: number): SamplingRequest =>
  request.seed === undefined || choice === 0
    ? request
    : { ...request, seed: (request.seed + choice) % 2 ** 32 };

import { randomUUID } from 'node:crypto';
import type { LlamaGrammar, Token } from 'node-llama-cpp';
import { type AnswerHead, type AnswerShape, type Choice, sumGenerated, usageOf } from './answers.js';
import { badRequest, notSupported, tooLong } from './failure.js';
import { generate, type Generated, type Generator } from './generate.js';
import type { Loaded } from './loaded.js';
import type { ResponseFormat, SamplingRequest } from './requests.js';
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

/** Generates for each prompt and answers in the given shape, whole or streamed. */
export async function respond(
  context: RouteContext,
  exchange: Exchange,
  shape: AnswerShape,
  request: SamplingRequest,
  prompts: readonly (readonly Token[])[],
  withTools: boolean,
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

  // Calls are looked for only where tools were given: elsewhere the same marks are the model's text.
  const run = async (
    prompt: readonly Token[],
    onPiece: (piece: Piece) => void | Promise<void>,
  ): Promise<{ part: Generated; reason: string }> => {
    if (!withTools) {
      const part = await generate(engine, prompt, request, grammar, exchange.signal, (text) =>
        onPiece({ kind: 'text', text }),
      );
      return { part, reason: part.finishReason };
    }
    const reader = new ToolCallText();
    let calls = 0;
    const give = async (pieces: readonly Piece[]) => {
      for (const piece of pieces) {
        if (piece.kind === 'call') calls += 1;
        await onPiece(piece);
      }
    };
    const part = await generate(engine, prompt, request, grammar, exchange.signal, (text) =>
      give(reader.push(text)),
    );
    await give(reader.flush());
    return { part, reason: calls > 0 && part.finishReason === 'stop' ? 'tool_calls' : part.finishReason };
  };

  const parts: Generated[] = [];
  if (!request.stream) {
    const choices: Choice[] = [];
    for (const prompt of prompts) {
      let text = '';
      const calls: ToolCall[] = [];
      const { part, reason } = await run(prompt, (piece) => {
        if (piece.kind === 'text') text += piece.text;
        else calls.push(piece.call);
      });
      choices.push({ text, reason, calls });
      parts.push(part);
    }
    const sum = sumGenerated(parts);
    return shape.whole(head, choices, usageOf(sum), sum.timings);
  }

  const frames = exchange.stream();
  const opening = shape.opening(head);
  if (opening) await frames.send(opening);
  for (const [index, prompt] of prompts.entries()) {
    let callIndex = 0;
    const { part, reason } = await run(prompt, (piece) =>
      frames.send(
        piece.kind === 'text'
          ? shape.text(head, index, piece.text)
          : shape.call(head, index, callIndex++, piece.call),
      ),
    );
    parts.push(part);
    await frames.send(shape.finish(head, index, reason, part.timings));
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

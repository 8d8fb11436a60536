import type { Generated, Timings, TokenLogprob } from './generate.js';
import type { ToolCall } from './tool-calls.js';

/** The shapes of OpenAI's answers, with llama-server's `timings` beside them. */

export interface AnswerHead {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
}

export const usageOf = (g: Generated) => ({
  prompt_tokens: g.promptTokens,
  completion_tokens: g.completionTokens,
  total_tokens: g.promptTokens + g.completionTokens,
  prompt_tokens_details: { cached_tokens: g.cachedTokens },
});

export interface Choice {
  readonly text: string;
  readonly reason: string;
  readonly calls: readonly ToolCall[];
  readonly stopString?: string;
  readonly logprobs?: readonly TokenLogprob[];
}

/** vLLM's name for the stop string that ended an answer; nobody else tells it. */
const stopReason = (stopString: string | undefined) =>
  stopString === undefined ? {} : { stop_reason: stopString };

const logprobsOf = (tokens: readonly TokenLogprob[] | undefined) =>
  tokens === undefined || tokens.length === 0 ? {} : { logprobs: { content: tokens, refusal: null } };

/** The older form, of plain completions. */
function plainLogprobs(tokens: readonly TokenLogprob[] | undefined): object | null {
  if (tokens === undefined || tokens.length === 0) return null;
  let offset = 0;
  return {
    tokens: tokens.map(({ token }) => token),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map(({ top_logprobs: top }) =>
      Object.fromEntries(top.map(({ token, logprob }) => [token, logprob])),
    ),
    text_offset: tokens.map(({ token }) => {
      offset += token.length;
      return offset - token.length;
    }),
  };
}

const callOf = ({ id, name, arguments: given }: ToolCall) => ({
  id,
  type: 'function',
  function: { name, arguments: given },
});

/** One way of answering: chat or plain completion. */
export interface AnswerShape {
  readonly idPrefix: string;
  /** Sent before the first text; undefined when there is none. */
  opening(head: AnswerHead, index: number): object | undefined;
  text(head: AnswerHead, index: number, text: string, logprobs: readonly TokenLogprob[]): object;
  /** Whole calls, one frame each: name and arguments are known only when the call is complete. */
  call(head: AnswerHead, index: number, callIndex: number, call: ToolCall): object;
  finish(
    head: AnswerHead,
    index: number,
    choice: Pick<Choice, 'reason' | 'stopString'>,
    timings: Timings,
  ): object;
  /** Only for callers that asked for usage; `choices` is empty. */
  usage(head: AnswerHead, usage: object, timings: Timings): object;
  whole(head: AnswerHead, choices: readonly Choice[], usage: object, timings: Timings): object;
}

export const CHAT: AnswerShape = {
  idPrefix: 'chatcmpl-',
  opening: (head, index) =>
    chatChunk(head, [{ index, delta: { role: 'assistant', content: null }, finish_reason: null }]),
  text: (head, index, content, logprobs) =>
    chatChunk(head, [{ index, delta: { content }, ...logprobsOf(logprobs), finish_reason: null }]),
  call: (head, index, callIndex, call) =>
    chatChunk(head, [
      { index, delta: { tool_calls: [{ index: callIndex, ...callOf(call) }] }, finish_reason: null },
    ]),
  finish: (head, index, { reason, stopString }, timings) => ({
    ...chatChunk(head, [{ index, delta: {}, finish_reason: reason, ...stopReason(stopString) }]),
    timings,
  }),
  usage: (head, usage, timings) => ({ ...chatChunk(head, []), usage, timings }),
  whole: (head, choices, usage, timings) => ({
    ...head,
    object: 'chat.completion',
    choices: choices.map(({ text, reason, calls, stopString, logprobs }, index) => ({
      index,
      message: {
        role: 'assistant',
        content: text === '' && calls.length > 0 ? null : text,
        ...(calls.length > 0 ? { tool_calls: calls.map(callOf) } : {}),
      },
      ...logprobsOf(logprobs),
      finish_reason: reason,
      ...stopReason(stopString),
    })),
    usage,
    timings,
  }),
};

const chatChunk = (head: AnswerHead, choices: readonly object[]) => ({
  ...head,
  object: 'chat.completion.chunk',
  choices,
});

export const COMPLETION: AnswerShape = {
  idPrefix: 'cmpl-',
  opening: () => undefined,
  text: (head, index, text, logprobs) =>
    completion(head, [{ index, text, logprobs: plainLogprobs(logprobs), finish_reason: null }]),
  call: () => {
    throw new Error('A plain completion calls no tool.');
  },
  finish: (head, index, { reason, stopString }, timings) => ({
    ...completion(head, [
      { index, text: '', logprobs: null, finish_reason: reason, ...stopReason(stopString) },
    ]),
    timings,
  }),
  usage: (head, usage, timings) => ({ ...completion(head, []), usage, timings }),
  whole: (head, choices, usage, timings) => ({
    ...completion(
      head,
      choices.map(({ text, reason, stopString, logprobs }, index) => ({
        index,
        text,
        logprobs: plainLogprobs(logprobs),
        finish_reason: reason,
        ...stopReason(stopString),
      })),
    ),
    usage,
    timings,
  }),
};

const completion = (head: AnswerHead, choices: readonly object[]) => ({
  ...head,
  object: 'text_completion',
  choices,
});

/** Several prompts of one request as one figure. */
export function sumGenerated(parts: readonly Generated[]): Generated {
  const [first, ...rest] = parts;
  if (!first) throw new Error('There is nothing to sum.');
  return rest.reduce((sum, part) => {
    const t = sum.timings;
    const u = part.timings;
    const promptN = t.prompt_n + u.prompt_n;
    const promptMs = t.prompt_ms + u.prompt_ms;
    const predictedN = t.predicted_n + u.predicted_n;
    const predictedMs = t.predicted_ms + u.predicted_ms;
    return {
      finishReason: part.finishReason,
      promptTokens: sum.promptTokens + part.promptTokens,
      cachedTokens: sum.cachedTokens + part.cachedTokens,
      completionTokens: sum.completionTokens + part.completionTokens,
      timings: {
        cache_n: t.cache_n + u.cache_n,
        prompt_n: promptN,
        prompt_ms: promptMs,
        prompt_per_token_ms: promptN > 0 ? promptMs / promptN : 0,
        prompt_per_second: promptMs > 0 ? (promptN * 1000) / promptMs : 0,
        predicted_n: predictedN,
        predicted_ms: predictedMs,
        predicted_per_token_ms: predictedN > 0 ? predictedMs / predictedN : 0,
        predicted_per_second: predictedMs > 0 ? (predictedN * 1000) / predictedMs : 0,
      },
    };
  }, first);
}

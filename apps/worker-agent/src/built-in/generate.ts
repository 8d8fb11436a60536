import { randomInt } from 'node:crypto';
import {
  LlamaGrammarEvaluationState,
  type LlamaContextSequence,
  type LlamaGrammar,
  type LlamaModel,
  type SequenceEvaluateOptions,
  TokenBias,
  type Token,
} from 'node-llama-cpp';
import { badRequest, tooLong } from './failure.js';
import type { SamplingRequest } from './requests.js';
import type { Slots } from './slots.js';
import { StopStrings, TokenText } from './text-stream.js';

/** As llama-server reports it with each answer. */
export interface Timings {
  readonly cache_n: number;
  readonly prompt_n: number;
  readonly prompt_ms: number;
  readonly prompt_per_token_ms: number;
  readonly prompt_per_second: number;
  readonly predicted_n: number;
  readonly predicted_ms: number;
  readonly predicted_per_token_ms: number;
  readonly predicted_per_second: number;
}

export interface Generated {
  readonly finishReason: 'stop' | 'length';
  /** The stop string that ended it. */
  readonly stopString?: string;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly timings: Timings;
}

/** How likely a token was, and which others were likely; text and bytes of each. */
export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
  readonly top_logprobs: readonly Omit<TokenLogprob, 'top_logprobs'>[];
}

/** Text as it comes, with what is known of its tokens. */
export type OnText = (text: string, logprobs: readonly TokenLogprob[]) => void | Promise<void>;

export interface Generator {
  readonly model: LlamaModel;
  readonly slots: Slots;
  /** Tokens per slot: prompt and answer together. */
  readonly contextTokens: number;
  /** A prompt is read in batches of this size; a client that leaves is noticed between two of them. */
  readonly microBatch: number;
}

/**
 * Waits for a slot, reads the prompt and generates until the model ends, a stop string, the asked length or the end of
 * the context. The slot is free again when it returns or throws.
 * @param onText is given text as it comes, never an empty one; generation waits for it.
 * @throws RequestError when the prompt does not fit; the signal's reason when the client left.
 */
export async function generate(
  engine: Generator,
  prompt: readonly Token[],
  request: SamplingRequest,
  grammar: LlamaGrammar | undefined,
  signal: AbortSignal,
  onText: OnText,
): Promise<Generated> {
  if (prompt.length === 0) throw badRequest('The prompt has no tokens.');
  if (prompt.length >= engine.contextTokens) throw tooLong(prompt.length, engine.contextTokens);
  const slot = await engine.slots.take(prompt, signal);
  try {
    return await onSlot(engine, slot.sequence, prompt, request, grammar, signal, onText);
  } finally {
    slot.release();
  }
}

async function onSlot(
  engine: Generator,
  sequence: LlamaContextSequence,
  prompt: readonly Token[],
  request: SamplingRequest,
  grammar: LlamaGrammar | undefined,
  signal: AbortSignal,
  onText: OnText,
): Promise<Generated> {
  const startedAt = performance.now();
  const cachedTokens = await reusePrefix(sequence, prompt);
  let rest = prompt.slice(cachedTokens);
  while (rest.length > engine.microBatch) {
    await sequence.evaluateWithoutGeneratingNewTokens(rest.slice(0, engine.microBatch));
    signal.throwIfAborted();
    rest = rest.slice(engine.microBatch);
  }

  const budget = Math.min(request.maxTokens ?? Infinity, engine.contextTokens - prompt.length);
  const text = new TokenText(engine.model);
  const stops = new StopStrings(request.stop);
  const generated: Token[] = [];
  let finishReason: 'stop' | 'length' = 'length';
  let stopString: string | undefined;
  let untold: TokenLogprob[] = [];
  let firstTokenAt = startedAt;
  const say = async (piece: string) => {
    if (piece === '') return;
    const told = untold;
    untold = [];
    await onText(piece, told);
  };

  if (budget > 0) {
    const options = samplerOptions(engine.model, request, grammar, generated);
    const { topLogprobs } = request;
    const wanted = topLogprobs !== undefined;
    const evaluated = sequence.evaluateWithMetadata(rest, { probabilities: wanted as true }, options);
    for await (const { token, probabilities } of evaluated) {
      if (generated.length === 0) firstTokenAt = performance.now();
      generated.push(token);
      signal.throwIfAborted();
      if (engine.model.isEogToken(token)) {
        finishReason = 'stop';
        break;
      }
      if (topLogprobs !== undefined) {
        untold.push(logprobOf(engine.model, token, probabilities, topLogprobs));
      }
      const out = stops.push(text.push(token));
      await say(out.text);
      if (out.stopped) {
        finishReason = 'stop';
        stopString = out.stop;
        break;
      }
      if (generated.length >= budget) break;
    }
    const out = stops.push(text.flush());
    await say(out.text);
    if (out.stopped) {
      finishReason = 'stop';
      stopString = out.stop;
    } else await say(stops.flush());
  }
  const promptN = prompt.length - cachedTokens;
  return {
    finishReason,
    ...(stopString === undefined ? {} : { stopString }),
    promptTokens: prompt.length,
    cachedTokens,
    completionTokens: generated.length,
    timings: timings(
      cachedTokens,
      promptN,
      firstTokenAt - startedAt,
      generated.length,
      performance.now() - firstTokenAt,
    ),
  };
}

/**
 * Keeps what the slot's cache shares with the prompt and erases the rest; the last token is always read again, since
 * its logits are wanted. Caches that cannot be cut (windows, recurrent states) are emptied.
 * @returns tokens that need not be read.
 */
async function reusePrefix(sequence: LlamaContextSequence, prompt: readonly Token[]): Promise<number> {
  if (sequence.needsCheckpoints) {
    await sequence.clearHistory();
    return 0;
  }
  await sequence.adaptStateToTokens(prompt.slice(0, -1), false);
  // A cache that is longer than the prompt but begins like it is cut too.
  if (sequence.nextTokenIndex > prompt.length - 1) {
    await sequence.eraseContextTokenRanges([{ start: prompt.length - 1, end: sequence.nextTokenIndex }]);
  }
  return sequence.nextTokenIndex;
}

/** The engine gives the probabilities that it sampled from: after the temperature and the filters. */
function logprobOf(
  model: LlamaModel,
  token: Token,
  probabilities: ReadonlyMap<Token, number> | undefined,
  top: number,
): TokenLogprob {
  const told = (id: Token, probability: number) => {
    const text = model.detokenize([id], true);
    return { token: text, logprob: Math.log(Math.max(probability, 1e-30)), bytes: [...Buffer.from(text)] };
  };
  const likeliest = [...(probabilities ?? [])].sort((a, b) => b[1] - a[1]).slice(0, top);
  return {
    ...told(token, probabilities?.get(token) ?? 1),
    top_logprobs: likeliest.map(([id, probability]) => told(id, probability)),
  };
}

function samplerOptions(
  model: LlamaModel,
  request: SamplingRequest,
  grammar: LlamaGrammar | undefined,
  generated: readonly Token[],
): SequenceEvaluateOptions {
  const { repeatPenalty, repeatLastTokens } = request;
  const penalised = request.frequencyPenalty !== 0 || request.presencePenalty !== 0 || repeatPenalty !== 1;
  return {
    temperature: request.temperature,
    topK: request.topK,
    topP: request.topP,
    minP: request.minP,
    seed: request.seed ?? randomInt(2 ** 32),
    yieldEogToken: true,
    ...(grammar === undefined
      ? {}
      : { grammarEvaluationState: new LlamaGrammarEvaluationState({ model, grammar }) }),
    ...(request.bias.size === 0 ? {} : { tokenBias: biasOf(model, request.bias) }),
    ...(penalised
      ? {
          repeatPenalty: {
            punishTokens: () =>
              repeatLastTokens === 0
                ? []
                : generated.slice(repeatLastTokens < 0 ? -MOST_PUNISHED : -repeatLastTokens),
            maxPunishTokens: repeatLastTokens < 0 ? MOST_PUNISHED : Math.min(MOST_PUNISHED, repeatLastTokens),
            penalty: repeatPenalty,
            frequencyPenalty: request.frequencyPenalty,
            presencePenalty: request.presencePenalty,
          },
        }
      : {}),
  };
}

/** The library sets memory aside for as many. */
const MOST_PUNISHED = 4096;

function biasOf(model: LlamaModel, wanted: ReadonlyMap<number, number>): TokenBias {
  const out = TokenBias.for(model);
  for (const [token, logit] of wanted) out.set(token as Token, logit === -Infinity ? 'never' : { logit });
  return out;
}

function timings(
  cacheN: number,
  promptN: number,
  promptMs: number,
  predictedN: number,
  predictedMs: number,
): Timings {
  const per = (amount: number, by: number) => (by > 0 ? amount / by : 0);
  return {
    cache_n: cacheN,
    prompt_n: promptN,
    prompt_ms: promptMs,
    prompt_per_token_ms: per(promptMs, promptN),
    prompt_per_second: per(promptN * 1000, promptMs),
    predicted_n: predictedN,
    predicted_ms: predictedMs,
    predicted_per_token_ms: per(predictedMs, predictedN),
    predicted_per_second: per(predictedN * 1000, predictedMs),
  };
}

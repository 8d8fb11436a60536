import { readFileSync } from 'node:fs';
import type {
  Llama,
  LlamaContext,
  LlamaEmbeddingContext,
  LlamaModel,
  LlamaRankingContext,
} from 'node-llama-cpp';
import { ChatPrompt } from './chat-prompt.js';
import {
  CONTEXT_IS_TOLD,
  copiedWeightBytesFromLines,
  kvBytesFromLines,
  splitContextBytes,
  WEIGHTS_ARE_TOLD,
} from './buffer-lines.js';
import type { EngineLog } from './engine-log.js';
import { contextOptions, modelOptions } from './llama.js';
import { inputLimitTokens, slotsOf, type ChildPlan } from './plan.js';
import { Slots } from './slots.js';

/** What serves requests, by the kind that the process was started for. */
export type Serving =
  | { readonly kind: 'chat'; readonly slots: Slots; readonly prompt: ChatPrompt }
  | { readonly kind: 'embedding'; readonly embedding: LlamaEmbeddingContext }
  | { readonly kind: 'rerank'; readonly ranking: LlamaRankingContext };

export interface Loaded {
  readonly llama: Llama;
  readonly model: LlamaModel;
  readonly serving: Serving;
  /** Tokens that one request may use. */
  readonly contextTokens: number;
  readonly weightsBytes: number;
  /** The part of the weights that is no mapped file. */
  readonly copiedWeightsBytes: number;
  readonly kvBytes: number;
  readonly computeBytes: number;
}

/**
 * Loads the weights, makes the context and computes one token, so that what is measured afterwards is what serving
 * takes and the first caller does not wait for pages.
 * @param log of the library; sizes that it gives nowhere else are read from it.
 */
export async function load(plan: ChildPlan, llama: Llama, log: EngineLog): Promise<Loaded> {
  const model = await llama.loadModel(modelOptions(plan));
  // While it makes a context the library drops lines that are still on their way, those of the weights too.
  await log.until(WEIGHTS_ARE_TOLD);
  const { serving, context } = await serve(plan, model);
  const text = await log.until(CONTEXT_IS_TOLD);
  return {
    llama,
    model,
    serving,
    contextTokens: inputLimitTokens(plan),
    ...weightBytes(model, copiedWeightBytesFromLines(text)),
    ...splitContextBytes(context.memoryUsage.ram, kvBytesFromLines(text, plan.kvType)),
  };
}

/** Tensors that were copied stay in the mapping too, where nobody reads them again: they are counted once. */
function weightBytes(model: LlamaModel, copiedWeightsBytes: number) {
  const { ram } = model.memoryUsage;
  return { weightsBytes: copiedWeightsBytes > 0 ? Math.min(ram, model.size) : ram, copiedWeightsBytes };
}

async function serve(
  plan: ChildPlan,
  model: LlamaModel,
): Promise<{ serving: Serving; context: LlamaContext }> {
  const options = contextOptions(plan, model.fileInsights.swaSize);
  if (plan.kind === 'chat') {
    const context = await model.createContext(options);
    const slots = new Slots(context, slotsOf(plan));
    const slot = await slots.take([], new AbortController().signal);
    await slot.sequence.evaluateWithoutGeneratingNewTokens(model.tokenize('.').slice(0, 1));
    await slot.sequence.clearHistory();
    slot.release();
    return { serving: { kind: 'chat', slots, prompt: new ChatPrompt(model) }, context };
  }
  if (plan.kind === 'embedding') {
    const embedding = await model.createEmbeddingContext(options);
    await embedding.getEmbeddingFor('.');
    return { serving: { kind: 'embedding', embedding }, context: contextOf(embedding) };
  }
  const ranking = await model.createRankingContext(options);
  await ranking.rank('.', '.');
  return { serving: { kind: 'rerank', ranking }, context: contextOf(ranking) };
}

/** The library shows the memory of a context only on the context itself, which its encoder wrappers keep inside. */
function contextOf(wrapper: object): LlamaContext {
  const inner = (wrapper as { readonly _llamaContext?: LlamaContext })._llamaContext;
  if (inner === undefined) {
    throw new Error('This release of node-llama-cpp does not say what its encoder context takes.');
  }
  return inner;
}

/** What the operating system says of this very process. */
export function processMemory(): { residentBytes: number; anonymousBytes: number } {
  try {
    const status = readFileSync('/proc/self/status', 'utf8');
    const bytes = (name: string) =>
      Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
    return { residentBytes: bytes('VmRSS'), anonymousBytes: bytes('RssAnon') };
  } catch {
    // No /proc: the resident set is all there is to say.
    const { rss } = process.memoryUsage();
    return { residentBytes: rss, anonymousBytes: rss };
  }
}

import {
  getLlama,
  GgmlType,
  LlamaLogLevel,
  type Llama,
  type LlamaContextOptions,
  type LlamaModelOptions,
} from 'node-llama-cpp';
import type { KvType } from '#domain/placement-terms.js';
import { allocatedContextTokens, slotsOf, type SizingPlan } from './plan.js';

export const KV_CACHE_TYPES: Readonly<Record<KvType, GgmlType>> = {
  f16: GgmlType.F16,
  q8_0: GgmlType.Q8_0,
  q4_0: GgmlType.Q4_0,
};

/**
 * The library on the CPU, from its prebuilt binary: never compiled, never downloaded. The thread count is the plan's:
 * the library's own default (at least 4) collapses on fewer cores, since its barriers spin.
 */
export const openLlama = (
  threads: number,
  logger: (level: LlamaLogLevel, message: string) => void,
  debug = false,
): Promise<Llama> =>
  getLlama({
    gpu: false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: threads,
    logLevel: LlamaLogLevel.info,
    logger,
    debug,
  });

/** Room was decided before the process was started: the library's own look at free memory is left out. */
export const modelOptions = (plan: SizingPlan): LlamaModelOptions => ({
  modelPath: plan.modelPath,
  gpuLayers: 0,
  useMmap: true,
  ignoreMemorySafetyChecks: true,
  defaultContextFlashAttention: plan.flashAttention,
  // The key and value types are named "experimental" by the library; llama.cpp itself has them as plain options.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  experimentalDefaultContextKvCacheKeyType: KV_CACHE_TYPES[plan.kvType],
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  experimentalDefaultContextKvCacheValueType: KV_CACHE_TYPES[plan.kvType],
});

/** @param windowTokens of the model's sliding window; undefined without one. */
export const contextOptions = (plan: SizingPlan, windowTokens: number | undefined) =>
  ({
    contextSize: allocatedContextTokens(plan.contextTokens),
    batchSize: batchTokens(plan, windowTokens),
    sequences: slotsOf(plan),
    threads: plan.threads,
    flashAttention: plan.flashAttention,
    ignoreMemorySafetyChecks: true,
    failedCreationRemedy: false,
  }) satisfies LlamaContextOptions;

/**
 * The library gives a model with a sliding window one token more than it is asked for, and a window is as many cells
 * longer as the micro-batch has tokens: asked for one less, it holds the plan's. An encoder needs its whole input in
 * one batch.
 */
export const batchTokens = (
  { kind, microBatch }: Pick<SizingPlan, 'kind' | 'microBatch'>,
  windowTokens: number | undefined,
): number =>
  kind === 'chat' && windowTokens !== undefined && windowTokens > 0
    ? Math.max(1, microBatch - 1)
    : microBatch;

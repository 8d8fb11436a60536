import { GgufInsights, readGgufFileInfo, type Llama } from 'node-llama-cpp';
import { CONTEXT_IS_TOLD, kvBytesFromLines, splitContextBytes } from './buffer-lines.js';
import { EngineLog } from './engine-log.js';
import { batchTokens, KV_CACHE_TYPES, openLlama } from './llama.js';
import { processMemory } from './loaded.js';
import { allocatedContextTokens, slotsOf, type SizingPlan } from './plan.js';

/**
 * Answers, over IPC, what a plan would take: the engine builds model and context without allocating. A process of its
 * own, since a malformed file may abort it. It lives as long as its parent wants, and not longer than its parent.
 */

export interface ProjectRequest {
  readonly id: number;
  readonly plan: SizingPlan;
}

export type ProjectorMessage =
  | {
      readonly kind: 'ready';
      /** What such a process takes before any model: an engine takes at least as much beside its buffers. */
      readonly processBytes: number;
      readonly gpu: string | false;
    }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'projected'; readonly id: number; readonly bytes: ProjectedBytes }
  | { readonly kind: 'unknown'; readonly id: number; readonly why: string };

export interface ProjectedBytes {
  readonly weightsBytes: number;
  readonly kvBytes: number;
  readonly computeBytes: number;
}

const FELL_BACK = /falling back to estimation/i;
const SIMULATED = new RegExp(`${FELL_BACK.source}|${CONTEXT_IS_TOLD.source}`, 'i');

const engineLog = new EngineLog();

const send = (message: ProjectorMessage) => process.send?.(message);

/**
 * The simulation silences the engine's log, and with it the cache sizes; there is no option for it. Should a release
 * lose this seam, no line comes, and a chat plan is answered with "unknown".
 */
function keepLog(llama: Llama): void {
  const seam = llama as unknown as { _createLogLevelOverride?: () => () => void };
  seam._createLogLevelOverride = () => () => undefined;
}

async function project(llama: Llama, plan: SizingPlan): Promise<ProjectedBytes> {
  const info = await readGgufFileInfo(plan.modelPath, { sourceType: 'filesystem' });
  const insights = await GgufInsights.from(info, llama);
  const weights = await insights.estimateModelResourceRequirementsV2({ gpuLayers: 0, useMmap: true });
  engineLog.clear();
  const context = await insights.estimateContextResourceRequirementsV2({
    contextSize: allocatedContextTokens(plan.contextTokens),
    modelGpuLayers: 0,
    batchSize: batchTokens(plan, insights.swaSize),
    sequences: slotsOf(plan),
    isEmbeddingContext: plan.kind !== 'chat',
    flashAttention: plan.flashAttention,
    kvCacheKeyType: KV_CACHE_TYPES[plan.kvType],
    kvCacheValueType: KV_CACHE_TYPES[plan.kvType],
    useMmap: true,
  });
  // The library falls back to a formula that can be off by a factor of two, and says so only in its log.
  const text = await engineLog.until(SIMULATED);
  if (FELL_BACK.test(text) || !CONTEXT_IS_TOLD.test(text)) {
    throw new Error('the engine could not build the context');
  }
  const kvBytes = kvBytesFromLines(text, plan.kvType);
  if (plan.kind === 'chat' && kvBytes === 0) throw new Error('the engine did not say the size of its cache');
  return { weightsBytes: weights.cpuRam, ...splitContextBytes(context.cpuRam, kvBytes) };
}

async function main(): Promise<void> {
  if (!process.send) throw new Error('The projector is started by the agent and talks to it over IPC.');
  process.on('disconnect', () => process.exit(0));
  const llama = await openLlama(1, engineLog.write);
  keepLog(llama);
  let queue = Promise.resolve();
  process.on('message', (request: ProjectRequest) => {
    queue = queue.then(async () => {
      engineLog.clear();
      try {
        send({ kind: 'projected', id: request.id, bytes: await project(llama, request.plan) });
      } catch (error) {
        send({
          kind: 'unknown',
          id: request.id,
          why: error instanceof Error ? error.message : String(error),
        });
      }
    });
  });
  send({ kind: 'ready', processBytes: processMemory().anonymousBytes, gpu: llama.gpu });
}

main().catch((error: unknown) => {
  send({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
  process.exitCode = 1;
  if (process.connected) process.disconnect();
});

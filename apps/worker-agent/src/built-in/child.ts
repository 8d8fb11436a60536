import { writeSync } from 'node:fs';
import { LlamaLogLevel } from 'node-llama-cpp';
import { builtInVersion } from './version.js';
import { EngineLog } from './engine-log.js';
import { openLlama } from './llama.js';
import { load, processMemory, type Loaded } from './loaded.js';
import { readPlan, slotsOf, type ChildPlan } from './plan.js';
import type { RouteContext } from './respond.js';
import { chat, completion, countTokens, embeddings, rerank } from './routes.js';
import { createEngineServer } from './server.js';

/**
 * One model in one process: `node child.js PLAN`, the key in BERTH_ENGINE_KEY. A malformed file may abort the process;
 * nothing else is in it. Its output has load-time lines only, and none after the model serves.
 */

/** Written at once, so that the last words of a process that aborts are in its file. */
const say = (line: string) => writeSync(2, `${line}\n`);

function letterOf(level: LlamaLogLevel): string {
  if (level === LlamaLogLevel.error || level === LlamaLogLevel.fatal) return 'E';
  return level === LlamaLogLevel.warn ? 'W' : 'I';
}

interface Serving {
  readonly loaded: Loaded;
  readonly stagedAt: string;
  readonly loadedAt: string;
}

const engineLog = new EngineLog((level, line) => say(`${letterOf(level)} ${line}`));

async function main(): Promise<void> {
  const plan = readPlan(process.argv[2] ?? '');
  const key = process.env['BERTH_ENGINE_KEY'] ?? '';
  if (key === '') throw new Error('BERTH_ENGINE_KEY is not set: an engine without a key would serve anyone.');
  // The library tests its binary in a process of its own, which needs no key.
  delete process.env['BERTH_ENGINE_KEY'];

  const stopping = new AbortController();
  const inFlight = { count: 0 };
  const serving: { now?: Serving } = {};
  let resolveReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => (resolveReady = resolve));

  const stop = () => {
    if (stopping.signal.aborted) return;
    stopping.abort(new Error('The engine is stopping.'));
    server.close();
    // The system takes the memory back faster and more surely than the library does; answers get a moment to leave.
    setTimeout(() => process.exit(0), inFlight.count > 0 ? 100 : 0);
  };
  const server = createEngineServer({
    key,
    ready,
    isReady: () => serving.now !== undefined,
    stopping: stopping.signal,
    get: (path) => serving.now && view(path, plan, serving.now, inFlight.count),
    post: (path) => serving.now && route(path, plan, serving.now.loaded),
    shutdown: stop,
    track: (change) => {
      inFlight.count += change;
    },
  });
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(plan.port, '127.0.0.1', resolve);
  });

  const llama = await openLlama(plan.threads, engineLog.write);
  const stagedAt = new Date().toISOString();
  say(`I berth: loading model, ${plan.kind}, ${plan.contextTokens} tokens x ${slotsOf(plan)}`);
  const loaded = await load(plan, llama, engineLog);
  // From here on nothing is written: no line of a request ever is.
  llama.logLevel = LlamaLogLevel.disabled;
  say(`I berth: model loaded, serves at 127.0.0.1:${plan.port}`);
  serving.now = { loaded, stagedAt, loadedAt: new Date().toISOString() };
  resolveReady();
}

function route(path: string, plan: ChildPlan, loaded: Loaded) {
  const context: RouteContext = {
    loaded,
    alias: plan.alias,
    microBatch: plan.microBatch,
    fingerprint: builtInVersion().build,
  };
  const routes = {
    '/chat/completions': chat,
    '/chat/completions/input_tokens': countTokens,
    '/completions': completion,
    '/embeddings': embeddings,
    '/rerank': rerank,
  };
  const found = Object.entries(routes).find(([name]) => path === name || path === `/v1${name}`)?.[1];
  return found && ((exchange: Parameters<typeof found>[1]) => found(context, exchange));
}

function view(
  path: string,
  plan: ChildPlan,
  { loaded, stagedAt, loadedAt }: Serving,
  inFlight: number,
): object | undefined {
  const { model, serving } = loaded;
  if (path === '/requests') {
    const slots = serving.kind === 'chat' ? serving.slots : undefined;
    const processing = slots ? slots.taken : Math.min(inFlight, 1);
    return { in_flight: inFlight, processing, queued: slots ? slots.waiting : inFlight - processing };
  }
  const meta = {
    n_ctx: loaded.contextTokens,
    n_ctx_train: model.trainContextSize,
    n_embd: model.embeddingVectorSize,
    n_params: model.fileInsights.totalParameters,
    n_vocab: model.fileInfo.metadata.tokenizer.ggml.tokens.length,
    size: model.size,
  };
  if (path === '/v1/models' || path === '/models') {
    const created = Math.floor(Date.parse(loadedAt) / 1000);
    return {
      object: 'list',
      data: [{ id: plan.alias, object: 'model', created, owned_by: 'berth', meta }],
    };
  }
  if (path !== '/props') return undefined;
  const { residentBytes, anonymousBytes } = processMemory();
  return {
    resident_id: plan.residentId,
    model_alias: plan.alias,
    model_path: plan.modelPath,
    kind: plan.kind,
    total_slots: slotsOf(plan),
    ...meta,
    default_generation_settings: { n_ctx: loaded.contextTokens },
    modalities: { vision: false, audio: false },
    chat_template: serving.kind === 'chat' ? serving.prompt.source : undefined,
    build_info: builtInVersion().build,
    engine: { kind: 'built-in', ...builtInVersion() },
    threads: plan.threads,
    staged_at: stagedAt,
    loaded_at: loadedAt,
    memory: {
      weights_bytes: loaded.weightsBytes,
      copied_weights_bytes: loaded.copiedWeightsBytes,
      kv_bytes: loaded.kvBytes,
      compute_bytes: loaded.computeBytes,
      resident_bytes: residentBytes,
      anonymous_bytes: anonymousBytes,
    },
    is_sleeping: false,
  };
}

main().catch(async (error: unknown) => {
  await engineLog.lastWords();
  const message = error instanceof Error ? error.message : String(error);
  say(`E berth: load failed: ${message}`);
  process.exit(1);
});

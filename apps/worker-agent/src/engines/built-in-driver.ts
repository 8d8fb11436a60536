import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import type { EngineOnWorker, MeasuredMemory } from '#domain/events/worker-events.js';
import { RAM } from '#domain/ids.js';
import type { DeviceBytes } from '#domain/placement-terms.js';
import { formatBytes } from '#domain/units.js';
import type { Logger } from '#runtime/logger.js';
import { packageRoot } from '#runtime/process-info.js';
import { slotsOf, type ChildPlan, type SizingPlan } from '../built-in/plan.js';
import { builtInVersion } from '../built-in/version.js';
import type { EngineDriver, EnginePlan, EngineStateFile, RunningEngine } from '../ports.js';
import { EngineFolder } from './engine-folder.js';
import { askEngine, objectOf } from './engine-http.js';
import type { EngineDialect } from './engine-dialect.js';
import { adoptEngine, launchEngine } from './launch.js';
import { readProcessMemory, totalFileBytes } from './process-memory.js';
import { freeLoopbackPort } from './port.js';
import { ProjectorPool } from './projector-pool.js';
import { DEFAULT_TIMING, type Timing } from './readiness.js';

const ASK_MS = 5000;

export interface BuiltInDriverOptions {
  readonly home: string;
  readonly log: Logger;
  readonly engineKey: (residentId: string) => string;
  readonly timing?: Timing;
  /** Gives the port that an engine is to serve on; one that is free now, unless told otherwise. */
  readonly freePort?: () => Promise<number>;
  /** How long a projector is kept for the next question. */
  readonly projectorIdleMs?: number;
}

/** node-llama-cpp in a child process of ours: the engine that every installation has. CPU only. */
export class BuiltInDriver implements EngineDriver {
  readonly kind = 'built-in' as const;
  readonly #folder: EngineFolder;
  readonly #projectors: ProjectorPool;
  readonly #dialect: EngineDialect;
  readonly #timing: Timing;

  constructor(private readonly options: BuiltInDriverOptions) {
    this.#folder = new EngineFolder(options.home);
    this.#timing = options.timing ?? DEFAULT_TIMING;
    this.#projectors = new ProjectorPool(
      script('projector.js'),
      join(this.#folder.path, 'projector.log'),
      (why) => options.log.warn({ engine: this.kind }, `the built-in engine cannot project: ${why}`),
      options.projectorIdleMs,
    );
    this.#dialect = builtInDialect(options.engineKey);
  }

  async probe(): Promise<EngineOnWorker | undefined> {
    try {
      if (!existsSync(script('child.js'))) {
        throw new Error(`${script('child.js')} is missing; build Berth first (npm run build)`);
      }
      await this.#loadOnce();
      return {
        kind: this.kind,
        ...builtInVersion(),
        capabilities: ['chat', 'embedding', 'rerank', 'slots', 'tools'],
      };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.options.log.error({ engine: this.kind }, `the built-in engine cannot be used: ${why}`);
      return undefined;
    }
  }

  /** Loading the library is the proof that it runs here: once for each build, Node and processor, as it takes a second. */
  async #loadOnce(): Promise<void> {
    const proof = join(this.#folder.path, 'built-in.proved');
    const subject = `${builtInVersion().build} node ${process.versions.node} ${cpus()[0]?.model ?? process.arch}\n`;
    const proved = await readFile(proof, 'utf8').catch(() => undefined);
    if (proved === subject) return;
    await this.#projectors.processBytes();
    await writeFile(proof, subject, { mode: 0o600 });
  }

  async project(
    plan: Omit<EnginePlan, 'residentId'>,
  ): Promise<{ byDevice: readonly DeviceBytes[]; source: string } | undefined> {
    const sizing = sizingOf(plan);
    if (!sizing) return undefined;
    const answer = await this.#projectors.project(sizing);
    if (!answer) return undefined;
    const { bytes, processBytes } = answer;
    const fileBytes = totalFileBytes(plan.files);
    if (bytes.weightsBytes > fileBytes) {
      this.options.log.warn(
        { engine: this.kind },
        `${plan.modelKey} ${plan.artifact} is cut short: its header tells of ${formatBytes(bytes.weightsBytes)} of weights, its files have ${formatBytes(fileBytes)}`,
      );
      return undefined;
    }
    return {
      byDevice: [{ deviceId: RAM, ...bytes, processBytes }],
      source: `node-llama-cpp@${builtInVersion().build}`,
    };
  }

  async launch(plan: EnginePlan): Promise<RunningEngine> {
    const sizing = sizingOf(plan);
    if (!sizing) throw new Error(`${plan.modelKey} ${plan.artifact} has no weight file.`);
    const port = await (this.options.freePort ?? freeLoopbackPort)();
    const childPlan: ChildPlan = { ...sizing, residentId: plan.residentId, alias: plan.modelKey, port };
    return launchEngine({
      plan,
      kind: this.kind,
      ...builtInVersion(),
      command: process.execPath,
      arguments: [script('child.js'), this.#folder.writePlan(plan.residentId, childPlan)],
      port,
      secrets: { BERTH_ENGINE_KEY: this.options.engineKey(plan.residentId) },
      folder: this.#folder,
      dialect: this.#dialect,
      timing: this.#timing,
    });
  }

  adopt(state: EngineStateFile): Promise<RunningEngine | undefined> {
    return adoptEngine(state, this.#folder, this.#dialect, this.#timing);
  }

  /** Of the projector that is kept warm; undefined while none is. */
  get projectorPid(): number | undefined {
    return this.#projectors.pid;
  }

  /** Ends the projector. Engines go on. */
  close(): Promise<void> {
    return this.#projectors.close();
  }
}

const script = (name: string): string =>
  join(packageRoot(), 'dist', 'apps', 'worker-agent', 'src', 'built-in', name);

function sizingOf(plan: Omit<EnginePlan, 'residentId'>): SizingPlan | undefined {
  const [modelPath] = plan.files;
  if (modelPath === undefined) return undefined;
  const { kind, contextTokens, slots, kvType, microBatch, flashAttention, threads } = plan.contract;
  return { modelPath, kind, contextTokens, slots, kvType, microBatch, flashAttention, threads };
}

function builtInDialect(engineKey: (residentId: string) => string): EngineDialect {
  const ask = async (state: EngineStateFile, path: string) =>
    objectOf(await askEngine(state.port, path, { key: engineKey(state.residentId), timeoutMs: ASK_MS }));
  return {
    healthPath: '/health?wait',
    key: (state) => engineKey(state.residentId),
    isServing: async (state) =>
      (await askEngine(state.port, '/health', { timeoutMs: ASK_MS }))?.status === 200,
    wrongIdentity: async (state) => {
      const props = await ask(state, '/props');
      if (!props) return 'it does not say what it serves, or asks for another key';
      if (props['resident_id'] !== state.residentId) return 'it serves another resident';
      return props['model_path'] === state.files[0] ? undefined : 'it serves another model file';
    },
    times: async (state) => {
      const props = await ask(state, '/props');
      const { staged_at: stagedAt, loaded_at: loadedAt } = props ?? {};
      return typeof stagedAt === 'string' && typeof loadedAt === 'string' ? { stagedAt, loadedAt } : {};
    },
    measure: async (state) => measured(state, await ask(state, '/props')),
    requestsInFlight: async (state) => numberOf((await ask(state, '/requests'))?.['in_flight']),
    askToStop: async (state) => {
      await askEngine(state.port, '/shutdown', {
        key: engineKey(state.residentId),
        method: 'POST',
        timeoutMs: ASK_MS,
      });
    },
  };
}

function measured(state: EngineStateFile, props: Record<string, unknown> | undefined): MeasuredMemory {
  const memory = props?.['memory'] as Record<string, unknown> | undefined;
  const said = (name: string): number => {
    const value = numberOf(memory?.[name]);
    if (value === undefined)
      throw new Error(`The built-in engine at port ${state.port} does not say its ${name}.`);
    return value;
  };
  const [weightsBytes, kvBytes, computeBytes] = [
    said('weights_bytes'),
    said('kv_bytes'),
    said('compute_bytes'),
  ];
  const copiedBytes = said('copied_weights_bytes');
  const system = readProcessMemory(state.pid);
  const hostAnonymousBytes = system.anonymousBytes ?? said('anonymous_bytes');
  return {
    byDevice: [
      {
        deviceId: RAM,
        weightsBytes,
        kvBytes,
        computeBytes,
        // Mapped weights are file pages; copied ones, cache and buffers are anonymous, and the rest is the process.
        processBytes: Math.max(0, hostAnonymousBytes - copiedBytes - kvBytes - computeBytes),
      },
    ],
    hostAnonymousBytes,
    hostResidentBytes: system.residentBytes ?? said('resident_bytes'),
    contextTokens: numberOf(props?.['n_ctx']) ?? state.contract.contextTokens,
    slots: slotsOf(state.contract),
  };
}

const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;

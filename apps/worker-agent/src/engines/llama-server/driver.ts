import { writeFileSync } from 'node:fs';
import type { EngineOnWorker } from '#domain/events/worker-events.js';
import type { DeviceBytes } from '#domain/placement-terms.js';
import type { Logger } from '#runtime/logger.js';
import {
  type EngineDriver,
  type EnginePlan,
  type EngineStateFile,
  LoadFailure,
  type RunningEngine,
} from '../../ports.js';
import { EngineFolder } from '../engine-folder.js';
import type { EngineDialect } from '../engine-dialect.js';
import { type FileIdentity, filesNow, identitiesOf, isSameFile } from '../file-identity.js';
import { adoptEngine, launchEngine } from '../launch.js';
import { freeLoopbackPort } from '../port.js';
import { DEFAULT_TIMING, type Timing } from '../readiness.js';
import { oracleArguments, serverArguments } from './arguments.js';
import { parseFitPrint } from './buffers.js';
import { llamaServerDialect } from './dialect.js';
import { findServers } from './discover.js';
import { probeServer, run, type ServerBinary } from './probe.js';

export interface LlamaServerDriverOptions {
  readonly home: string;
  readonly llamaServerBin?: string;
  readonly log: Logger;
  readonly engineKey: (residentId: string) => string;
  readonly timing?: Timing;
  /** Where else binaries are looked for; for tests. */
  readonly search?: { readonly path: string; readonly opt: string };
}

/** An external llama-server: preferred when there is one, since it knows accelerators, tools and more models. */
export class LlamaServerDriver implements EngineDriver {
  readonly kind = 'llama-server' as const;
  readonly #folder: EngineFolder;
  readonly #dialect: EngineDialect;
  readonly #timing: Timing;
  #binary: ServerBinary | undefined;
  /** What lay where programs are looked for at the last probe, whether or not it passed. */
  #seen: readonly FileIdentity[] = [];

  constructor(private readonly options: LlamaServerDriverOptions) {
    this.#folder = new EngineFolder(options.home);
    this.#dialect = llamaServerDialect(options.engineKey);
    this.#timing = options.timing ?? DEFAULT_TIMING;
  }

  async probe(): Promise<EngineOnWorker | undefined> {
    const { llamaServerBin: named, log } = this.options;
    const found = this.#found();
    this.#seen = identitiesOf(found);
    this.#binary = undefined;
    if (named !== undefined && found[0] !== named) {
      log.warn({ engine: this.kind }, `LLAMA_SERVER_BIN names ${named}, which is no program that can be run`);
    }
    for (const path of found) {
      try {
        this.#binary = await probeServer(path, this.#folder.path);
        return described(this.#binary);
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        log.warn({ engine: this.kind }, `this llama-server is not used: ${why}`);
      }
    }
    if (found.length === 0) log.info({ engine: this.kind }, 'no llama-server is on this machine');
    return undefined;
  }

  /** One that is gone is no other: a launch says what became of it. */
  hasChanged(): boolean {
    const known = new Map(this.#seen.map((file) => [file.path, file]));
    const another = identitiesOf(this.#found()).some((now) => {
      const was = known.get(now.path);
      return was === undefined || !isSameFile(now, was);
    });
    return another || (this.#binary !== undefined && filesNow(this.#binary.files) === 'replaced');
  }

  #found(): readonly string[] {
    const { home, llamaServerBin: named, search } = this.options;
    return findServers({
      home,
      path: search?.path ?? process.env['PATH'],
      opt: search?.opt ?? '/opt',
      ...(named === undefined ? {} : { named }),
    });
  }

  async project(
    plan: Omit<EnginePlan, 'residentId'>,
  ): Promise<{ byDevice: readonly DeviceBytes[]; source: string } | undefined> {
    const { build, oracle } = await this.#probed();
    const [modelPath] = plan.files;
    const args =
      oracle && modelPath !== undefined ? oracleArguments(oracle.flags, plan.contract, modelPath) : undefined;
    if (!oracle || !args) return undefined;
    try {
      const byDevice = parseFitPrint(await run(oracle.path, args), plan.contract.devices);
      // What the process takes beside its buffers is learned from its first load.
      return (
        byDevice && {
          byDevice: byDevice.map((device) => ({ ...device, processBytes: 0 })),
          source: `llama-fit-params@${build}`,
        }
      );
    } catch (error) {
      // It exits or aborts on a file that it cannot read: nothing is known then.
      const why = error instanceof Error ? error.message : String(error);
      this.options.log.warn({ engine: this.kind }, `no projection: ${why}`);
      return undefined;
    }
  }

  async launch(plan: EnginePlan): Promise<RunningEngine> {
    const { path, version, build, flags } = await this.#probed();
    const [modelPath] = plan.files;
    if (modelPath === undefined) throw new Error(`${plan.modelKey} ${plan.artifact} has no weight file.`);
    const key = this.options.engineKey(plan.residentId);
    const byEnvironment = flags.readsEnvironment('LLAMA_API_KEY');
    const port = await freeLoopbackPort();
    return launchEngine({
      plan,
      kind: this.kind,
      version,
      build,
      command: path,
      arguments: serverArguments(flags, plan.contract, {
        modelPath,
        alias: plan.modelKey,
        port,
        ...(byEnvironment ? {} : { keyFile: this.#writeKey(plan.residentId, key) }),
      }),
      port,
      secrets: {
        ...(byEnvironment ? { LLAMA_API_KEY: key } : {}),
        ...(plan.contract.devices.length > 0
          ? { CUDA_VISIBLE_DEVICES: plan.contract.devices.join(',') }
          : {}),
      },
      folder: this.#folder,
      dialect: this.#dialect,
      timing: this.#timing,
    });
  }

  adopt(state: EngineStateFile): Promise<RunningEngine | undefined> {
    return adoptEngine(state, this.#folder, this.#dialect, this.#timing);
  }

  #writeKey(residentId: string, key: string): string {
    const file = this.#folder.planFile(residentId);
    this.#folder.make();
    writeFileSync(file, `${key}\n`, { mode: 0o600 });
    return file;
  }

  /** A binary may have been replaced since it was probed: what it is, and which flags it knows, is asked again then. */
  async #probed(): Promise<ServerBinary> {
    if (!this.#binary || this.hasChanged()) await this.probe();
    if (!this.#binary) {
      const message = 'There is no llama-server on this machine that passes its probe.';
      throw new LoadFailure('incompatible-engine', message, '');
    }
    return this.#binary;
  }
}

function described(binary: ServerBinary): EngineOnWorker {
  return {
    kind: 'llama-server',
    version: binary.version,
    build: binary.build,
    capabilities: [
      'chat',
      'embedding',
      'rerank',
      'slots',
      'tools',
      'vision',
      ...(binary.routes.messages ? ['messages'] : []),
      ...(binary.routes.responses ? ['responses'] : []),
      ...(binary.devices.length > 0 ? ['gpu'] : []),
      ...(binary.flags.first('-ncmoe', '--n-cpu-moe') === undefined ? [] : ['moe-split']),
    ],
  };
}

import { existsSync, readFileSync } from 'node:fs';
import type { EngineKind } from '#domain/placement-terms.js';
import { bootId, isAlive, pidStartTicks } from '#runtime/process-info.js';
import { LoadFailure, type EnginePlan, type EngineStateFile } from '../ports.js';
import { ENGINE_MARK, engineMark } from './engine-family.js';
import type { EngineFolder } from './engine-folder.js';
import type { EngineDialect } from './engine-dialect.js';
import { endGroup, EngineProcess } from './engine-process.js';
import { identitiesOf } from './file-identity.js';
import { spawnFailure } from './load-failure.js';
import type { Timing } from './readiness.js';
import { engineVariables, secretsFile } from './engine-extras.js';
import { engineEnvironment, isExecutable, spawnEngine } from './spawn.js';

export interface LaunchOptions {
  readonly plan: EnginePlan;
  readonly kind: EngineKind;
  readonly version: string;
  readonly build: string;
  readonly command: string;
  readonly arguments: readonly string[];
  readonly port: number;
  readonly secrets: Readonly<Record<string, string>>;
  readonly folder: EngineFolder;
  readonly dialect: EngineDialect;
  readonly timing: Timing;
}

/** Spawns an engine and leaves its state file, so that it can be found by whoever comes after this agent. */
export async function launchEngine(options: LaunchOptions): Promise<EngineProcess> {
  const { plan, folder } = options;
  if (!isExecutable(options.command)) {
    folder.remove(plan.residentId);
    const message = `The engine's program ${options.command} is not there, or cannot be executed. Once it is mended, it is used again.`;
    throw new LoadFailure('incompatible-engine', message, '');
  }
  let variables: Readonly<Record<string, string>>;
  try {
    variables = engineVariables(plan.contract, options.kind, secretsFile(folder.path));
  } catch (error) {
    folder.remove(plan.residentId);
    throw error;
  }
  folder.make();
  // Before the engine opens them: what is put in their place afterwards is another file.
  const loadedFiles = identitiesOf(plan.files);
  const startedAt = new Date().toISOString();
  const child = await spawnEngine({
    command: options.command,
    arguments: options.arguments,
    env: engineEnvironment(process.env, {
      ...variables,
      ...options.secrets,
      [ENGINE_MARK]: engineMark(folder.path, plan.residentId),
    }),
    logFile: folder.logFile(plan.residentId),
    cwd: folder.path,
    ...(plan.contract.cores === undefined ? {} : { cores: plan.contract.cores }),
  }).catch((error: unknown) => {
    folder.remove(plan.residentId);
    throw spawnFailure(error);
  });
  const ticks = pidStartTicks(child.pid);
  const state: EngineStateFile = {
    residentId: plan.residentId,
    modelKey: plan.modelKey,
    artifact: plan.artifact,
    driver: options.kind,
    pid: child.pid,
    ...(ticks === undefined ? {} : { pidStartTicks: ticks }),
    bootId: bootId(),
    port: options.port,
    arguments: [options.command, ...options.arguments],
    engine: { kind: options.kind, version: options.version, build: options.build },
    files: plan.files,
    contract: plan.contract,
    startedAt,
    loadedFiles,
  };
  try {
    folder.writeState(state);
  } catch (error) {
    // An engine without a state file would be lost to the next agent.
    await endGroup(child);
    folder.remove(plan.residentId);
    throw spawnFailure(error);
  }
  return new EngineProcess(state, options.dialect, folder, options.timing, child);
}

/** The same process as the state file's, or undefined when it is gone, is another, or serves something else. */
export async function adoptEngine(
  state: EngineStateFile,
  folder: EngineFolder,
  dialect: EngineDialect,
  timing: Timing,
): Promise<EngineProcess | undefined> {
  if (state.bootId !== bootId() || !isAlive(state.pid, state.pidStartTicks) || !commandMatches(state)) {
    folder.remove(state.residentId);
    return undefined;
  }
  // One that still loads, or hangs, cannot be asked yet: `ready` looks at its identity, and ends it when it is wrong.
  if ((await dialect.wrongIdentity(state)) !== undefined && (await dialect.isServing(state)))
    return undefined;
  return new EngineProcess(state, dialect, folder, timing);
}

/** Where there is no /proc, pid and start time must do. */
function commandMatches(state: EngineStateFile): boolean {
  const file = `/proc/${state.pid}/cmdline`;
  if (!existsSync('/proc/self/cmdline')) return true;
  try {
    const words = readFileSync(file, 'utf8').split('\0');
    return state.arguments.slice(1).every((word) => words.includes(word));
  } catch {
    // Gone between the two looks.
    return false;
  }
}

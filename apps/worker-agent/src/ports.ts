import type { EngineOnWorker, LoadFailureClass, MeasuredMemory } from '#domain/events/worker-events.js';
import type { ModelKey, ResidentId } from '#domain/ids.js';
import type { Contract, DeviceBytes, EngineKind } from '#domain/placement-terms.js';
import type { FileIdentity, FilesNow } from './engines/file-identity.js';
import type { Work } from './engines/work.js';

/** Everything that an engine is started with. Nothing is left to the engine to choose. */
export interface EnginePlan {
  readonly residentId: ResidentId;
  readonly modelKey: ModelKey;
  readonly artifact: string;
  /** Absolute paths of the weight files, the first shard first. */
  readonly files: readonly string[];
  readonly contract: Contract;
}

export interface EngineExit {
  readonly code?: number;
  readonly signal?: string;
  /** It was ended because it had answered nothing and done nothing for so long. */
  readonly unansweredSeconds?: number;
}

/** Thrown by `ready`: the engine did not come up, and why, in its own words. */
export class LoadFailure extends Error {
  override readonly name = 'LoadFailure';
  constructor(
    readonly failureClass: LoadFailureClass,
    message: string,
    /** At most 4 KiB, only lines of known load-time shapes. */
    readonly logTail: string,
  ) {
    super(message);
  }
}

/** Thrown by `ready`: another program took the port before the engine did. Nothing is wrong with the plan. */
export class PortTaken extends LoadFailure {
  constructor(
    readonly port: number,
    logTail: string,
  ) {
    super('exited', `Port ${port} was taken by another program before the engine had it.`, logTail);
  }
}

export interface ReadyFacts {
  /** When the process began to read weights, ISO. */
  readonly stagedAt: string;
  /** When it first served, ISO. */
  readonly loadedAt: string;
}

export interface LoadProgress {
  readonly phase: 'starting' | 'reading' | 'warming';
  /** 0 to 1. */
  readonly fraction: number;
}

/** One engine process, started by us or adopted from an agent before us. */
export interface RunningEngine {
  readonly residentId: ResidentId;
  readonly pid: number;
  readonly pidStartTicks?: number;
  readonly port: number;
  /** When it was spawned, ISO. */
  readonly startedAt: string;
  readonly engine: { readonly kind: EngineKind; readonly version: string; readonly build: string };
  /** As started, secrets left out. */
  readonly arguments: readonly string[];
  /** Settles when the process is gone, however it went. Adopted processes are watched by their pid. */
  readonly exited: Promise<EngineExit>;
  /**
   * Resolves when the engine serves the right model: `/health`, then its identity.
   * @throws LoadFailure, `PortTaken` where another port would do; the process is gone when it is thrown.
   */
  ready(onProgress: (progress: LoadProgress) => void, signal?: AbortSignal): Promise<ReadyFacts>;
  /** From the engine's own figures and the operating system's. */
  measure(): Promise<MeasuredMemory>;
  /**
   * Fills its cache with a prompt as long as its context, as far as `goesOn` says so.
   * @returns how many tokens it held; undefined when it was ended or cannot be told.
   * @throws when the engine died of it.
   */
  fill(goesOn: () => boolean): Promise<number | undefined>;
  /** Whether the weight files still are those that it was started with. */
  filesNow(): FilesNow;
  /** Requests that the engine works on now, as the engine says; undefined when it does not answer. */
  requestsInFlight(): Promise<number | undefined>;
  /** Whether anything answers on its port within the time, well or not. */
  answers(withinMs: number): Promise<boolean>;
  /** What its processes do; undefined where the system does not tell. */
  work(): Work | undefined;
  /** Ends it at once as one that hangs: its end is told as a crash. */
  giveUp(unansweredSeconds: number): void;
  /** The engine's own way, then SIGTERM, then SIGKILL after 10 s. Resolves when the process is gone. */
  stop(): Promise<void>;
  /** The last lines of known load-time shapes, at most 4 KiB. Never a line of a request. */
  logTail(): Promise<string>;
}

/** What an agent leaves on disk of each engine, so that the next one can find it. 0600, in `<home>/engines/`. */
export interface EngineStateFile {
  readonly residentId: ResidentId;
  readonly modelKey: ModelKey;
  readonly artifact: string;
  readonly driver: EngineKind;
  readonly pid: number;
  readonly pidStartTicks?: number;
  readonly bootId: string;
  readonly port: number;
  readonly arguments: readonly string[];
  readonly engine: { readonly kind: EngineKind; readonly version: string; readonly build: string };
  readonly files: readonly string[];
  readonly contract: Contract;
  readonly startedAt: string;
  /** As they were when it was started; left out by agents that did not keep it. */
  readonly loadedFiles?: readonly FileIdentity[];
}

/** One kind of engine. vLLM, SGLang and others come behind the same interface. */
export interface EngineDriver {
  readonly kind: EngineKind;
  /** What is installed; undefined with the reason told to `log` when it cannot be used. */
  probe(): Promise<EngineOnWorker | undefined>;
  /** Whether a program lies there now that is another, or was not there, at the last probe. Absent where that cannot be. */
  hasChanged?(): boolean;
  /**
   * Bytes per device that the engine says the plan takes, without loading it.
   * @returns undefined when it cannot say (its oracle is missing, or died on the file); never a guess.
   */
  project(
    plan: Omit<EnginePlan, 'residentId'>,
  ): Promise<{ byDevice: readonly DeviceBytes[]; source: string } | undefined>;
  /** Spawns the process in a group of its own, with its output in a file; returns when it has a pid. */
  launch(plan: EnginePlan): Promise<RunningEngine>;
  /** The same process again, from its state file; undefined when it is gone or is another. */
  adopt(state: EngineStateFile): Promise<RunningEngine | undefined>;
}

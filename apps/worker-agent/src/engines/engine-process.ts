import type { ChildProcess } from 'node:child_process';
import type { MeasuredMemory } from '#domain/events/worker-events.js';
import type { EngineKind } from '#domain/placement-terms.js';
import { isAlive } from '#runtime/process-info.js';
import type { EngineExit, EngineStateFile, LoadProgress, ReadyFacts, RunningEngine } from '../ports.js';
import type { EngineDialect } from './engine-dialect.js';
import { killFamily, markedProcesses } from './engine-family.js';
import type { EngineFolder } from './engine-folder.js';
import { filesNow, type FilesNow } from './file-identity.js';
import { askEngine } from './engine-http.js';
import { fillContext } from './fill-context.js';
import { cutLog, filterLoadTimeLines, readLogStart } from './log-tail.js';
import { PortWatch } from './port.js';
import { awaitReady, type Timing } from './readiness.js';
import { workOf, type Work } from './work.js';

const POLL_GONE_MS = 100;
const OWN_WAY_MS = 2000;
const KEEP_FILES_EVERY_MS = 30_000;
/** A killed process is gone within milliseconds; one that the kernel holds is not waited for without end. */
const FAMILY_LOOKS = 100;
const FAMILY_LOOK_MS = 20;

/** One engine process: the child of this agent, or one that an agent before it left running. */
export class EngineProcess implements RunningEngine {
  readonly exited: Promise<EngineExit>;
  readonly pidStartTicks?: number;
  #gone: EngineExit | undefined;
  #stopping: Promise<void> | undefined;
  #unansweredSeconds: number | undefined;

  constructor(
    private readonly state: EngineStateFile,
    private readonly dialect: EngineDialect,
    private readonly folder: EngineFolder,
    private readonly timing: Timing,
    child?: ChildProcess,
  ) {
    const keeping = setInterval(() => this.#keepFiles(), timing.keepFilesEveryMs ?? KEEP_FILES_EVERY_MS);
    keeping.unref();
    if (state.pidStartTicks !== undefined) this.pidStartTicks = state.pidStartTicks;
    this.exited = (child ? exitOfChild(child) : exitOfAdopted(state)).then(async (said) => {
      const exit: EngineExit =
        this.#unansweredSeconds === undefined
          ? said
          : { ...said, unansweredSeconds: this.#unansweredSeconds };
      this.#gone = exit;
      clearInterval(keeping);
      await this.#endFamily();
      this.folder.remove(state.residentId);
      return exit;
    });
  }

  get residentId() {
    return this.state.residentId;
  }

  get pid(): number {
    return this.state.pid;
  }

  get port(): number {
    return this.state.port;
  }

  get startedAt(): string {
    return this.state.startedAt;
  }

  get engine(): { readonly kind: EngineKind; readonly version: string; readonly build: string } {
    return this.state.engine;
  }

  get arguments(): readonly string[] {
    return this.state.arguments;
  }

  async ready(onProgress: (progress: LoadProgress) => void, signal?: AbortSignal): Promise<ReadyFacts> {
    try {
      return await awaitReady({
        state: this.state,
        dialect: this.dialect,
        timing: this.timing,
        port: new PortWatch(this.port, this.pid, () => this.#family(), this.timing.stallMs),
        exited: this.exited,
        isGone: () => this.#gone,
        log: () => readLogStart(this.folder.logFile(this.residentId)),
        onProgress,
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  measure(): Promise<MeasuredMemory> {
    return this.dialect.measure(this.state, readLogStart(this.folder.logFile(this.residentId)));
  }

  async fill(goesOn: () => boolean): Promise<number | undefined> {
    const filled = await fillContext({
      port: this.port,
      key: this.dialect.key(this.state),
      contextTokens: this.state.contract.contextTokens,
      goesOn,
    });
    if (this.#gone !== undefined) throw new Error('the engine ended while its context was filled');
    return filled;
  }

  filesNow(): FilesNow {
    return filesNow(this.state.loadedFiles ?? []);
  }

  requestsInFlight(): Promise<number | undefined> {
    return this.dialect.requestsInFlight(this.state);
  }

  async answers(withinMs: number): Promise<boolean> {
    return (await askEngine(this.port, this.dialect.healthPath, { timeoutMs: withinMs })) !== undefined;
  }

  work(): Work | undefined {
    return workOf([...new Set([this.pid, ...this.#family()])]);
  }

  /** SIGKILL: one that is stopped by the system, or hangs, heeds nothing else. */
  giveUp(unansweredSeconds: number): void {
    if (this.#gone !== undefined) return;
    this.#unansweredSeconds = unansweredSeconds;
    signalGroup(this.pid, 'SIGKILL');
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  logTail(): Promise<string> {
    return Promise.resolve(filterLoadTimeLines(readLogStart(this.folder.logFile(this.residentId))));
  }

  /** Its log does not fill the disk, and whoever comes after this agent finds it. */
  #keepFiles(): void {
    try {
      cutLog(this.folder.logFile(this.residentId));
      if (!this.folder.knows(this.residentId)) this.folder.writeState(this.state);
    } catch {
      // A disk that is full, or not ours to write on now, may be better at the next look; the engine serves on.
    }
  }

  async #stop(): Promise<void> {
    if (this.dialect.askToStop && this.#gone === undefined) {
      await Promise.race([this.dialect.askToStop(this.state), this.exited]);
      if (await this.#isGoneWithin(OWN_WAY_MS)) return;
    }
    await this.#end();
  }

  /** SIGTERM to the whole group, SIGKILL when it is still there; resolves when it is gone. */
  async #end(): Promise<void> {
    if (this.#gone === undefined) signalGroup(this.pid, 'SIGTERM');
    if (!(await this.#isGoneWithin(this.timing.killAfterMs))) signalGroup(this.pid, 'SIGKILL');
    await this.exited;
  }

  /** An engine may be started through a script, and listen in a process of its own. */
  #family(): readonly number[] {
    return markedProcesses(this.folder.path)
      .filter((one) => one.residentId === this.residentId)
      .map(({ pid }) => pid);
  }

  /**
   * What the engine forked may hold its memory: the group goes with it, and what left the group too. The end of an
   * engine is told only when nothing of it is left, since its room is offered then.
   */
  async #endFamily(): Promise<void> {
    signalGroup(this.pid, 'SIGKILL');
    for (let looks = 0; looks < FAMILY_LOOKS; looks += 1) {
      if (killFamily(this.folder.path, this.residentId) === 0) return;
      await new Promise((resolve) => setTimeout(resolve, FAMILY_LOOK_MS));
    }
  }

  async #isGoneWithin(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), ms);
    });
    const gone = await Promise.race([this.exited.then(() => true as const), late]);
    clearTimeout(timer);
    return gone;
  }
}

function exitOfChild(child: ChildProcess): Promise<EngineExit> {
  const said = (code: number | null, signal: string | null): EngineExit => ({
    ...(code === null ? {} : { code }),
    ...(signal === null ? {} : { signal }),
  });
  if (child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve(said(child.exitCode, child.signalCode));
  }
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(said(code, signal)));
  });
}

/** The system tells only a parent how a process ended. */
function exitOfAdopted(state: EngineStateFile): Promise<EngineExit> {
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (isAlive(state.pid, state.pidStartTicks)) return;
      clearInterval(timer);
      resolve({});
    }, POLL_GONE_MS);
    timer.unref();
  });
}

/** Ends a child that nobody else knows of; settles when it is gone. */
export async function endGroup(child: ChildProcess & { readonly pid: number }): Promise<void> {
  signalGroup(child.pid, 'SIGKILL');
  await exitOfChild(child);
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

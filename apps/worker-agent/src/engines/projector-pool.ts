import { fork, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { ProjectedBytes, ProjectorMessage, ProjectRequest } from '../built-in/projector.js';
import type { SizingPlan } from '../built-in/plan.js';
import { engineEnvironment } from './spawn.js';

export interface ProjectorReady {
  readonly processBytes: number;
}

interface Waiting {
  readonly resolve: (bytes: ProjectedBytes | undefined) => void;
}

interface Projector {
  readonly child: ChildProcess;
  readonly ready: Promise<ProjectorReady>;
  readonly waiting: Map<number, Waiting>;
}

/**
 * Keeps one projector process warm between questions, at most for the idle time. A question that kills it is answered
 * with undefined, and the next one starts another.
 */
export class ProjectorPool {
  #projector: Projector | undefined;
  #idle: NodeJS.Timeout | undefined;
  #nextId = 1;

  constructor(
    private readonly script: string,
    private readonly logFile: string,
    private readonly onUnknown: (why: string) => void,
    private readonly idleMs = 60_000,
    private readonly questionMs = 30_000,
  ) {}

  /** @throws Error in the library's words, when it does not run on this machine. */
  async processBytes(): Promise<number> {
    try {
      return (await this.#start().ready).processBytes;
    } finally {
      this.#armIdle();
    }
  }

  async project(plan: SizingPlan): Promise<{ bytes: ProjectedBytes; processBytes: number } | undefined> {
    const projector = this.#start();
    try {
      const { processBytes } = await projector.ready;
      const id = this.#nextId++;
      const bytes = await new Promise<ProjectedBytes | undefined>((resolve) => {
        const timer = setTimeout(() => {
          this.onUnknown(`no answer within ${this.questionMs / 1000} s about ${plan.modelPath}`);
          projector.child.kill('SIGKILL');
        }, this.questionMs);
        projector.waiting.set(id, {
          resolve: (answer) => {
            clearTimeout(timer);
            projector.waiting.delete(id);
            resolve(answer);
          },
        });
        projector.child.send({ id, plan } satisfies ProjectRequest, (error) => {
          if (error) projector.waiting.get(id)?.resolve(undefined);
        });
      });
      return bytes && { bytes, processBytes };
    } catch (error) {
      this.onUnknown(error instanceof Error ? error.message : String(error));
      return undefined;
    } finally {
      this.#armIdle();
    }
  }

  get pid(): number | undefined {
    return this.#projector?.child.pid;
  }

  /** Resolves when no projector runs. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const child = this.#projector?.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  #start(): Projector {
    clearTimeout(this.#idle);
    if (this.#projector) return this.#projector;
    const log = openSync(this.logFile, 'w', 0o600);
    const child = fork(this.script, [], {
      // Nothing that the agent was started with (inspectors, loaders) belongs to it.
      execArgv: [],
      stdio: ['ignore', log, log, 'ipc'],
      env: engineEnvironment(process.env, {}),
    });
    closeSync(log);
    const waiting = new Map<number, Waiting>();
    const ready = new Promise<ProjectorReady>((resolve, reject) => {
      child.on('message', (message: ProjectorMessage) => {
        if (message.kind === 'ready') resolve({ processBytes: message.processBytes });
        else if (message.kind === 'failed') reject(new Error(message.message));
        else if (message.kind === 'projected') waiting.get(message.id)?.resolve(message.bytes);
        else {
          this.onUnknown(message.why);
          waiting.get(message.id)?.resolve(undefined);
        }
      });
      child.on('error', reject);
      child.on('exit', (code, signal) => {
        if (this.#projector?.child === child) this.#projector = undefined;
        const how = signal ?? `code ${code ?? 'unknown'}`;
        reject(new Error(`The projector of the built-in engine ended with ${how} before it was ready.`));
        if (waiting.size > 0) this.onUnknown(`the projector ended with ${how} over a model file`);
        for (const { resolve: answer } of [...waiting.values()]) answer(undefined);
      });
    });
    // Whoever asks awaits it; a start that nobody asks about any more must not be an unhandled rejection.
    ready.catch(() => undefined);
    child.unref();
    this.#projector = { child, ready, waiting };
    return this.#projector;
  }

  #armIdle(): void {
    clearTimeout(this.#idle);
    if (!this.#projector || this.#projector.waiting.size > 0) return;
    const { child } = this.#projector;
    this.#idle = setTimeout(() => child.kill('SIGTERM'), this.idleMs);
    this.#idle.unref();
  }
}

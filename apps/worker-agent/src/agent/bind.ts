import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { ResidentId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { Logger } from '#runtime/logger.js';
import { findProgram } from '../engines/spawn.js';
import type { RunningEngines } from './engines.js';

const run = promisify(execFile);
const MOST_MS = 5000;

/** Binds engines to the cores that the log says, all their threads; what was bound at its start is as it was. */
export class CoreBinder {
  readonly #engines: RunningEngines;
  readonly #log: Logger;
  readonly #bound = new Map<ResidentId, string>();
  readonly #binding = new Set<ResidentId>();

  constructor(engines: RunningEngines, log: Logger) {
    this.#engines = engines;
    this.#log = log;
  }

  /** Looks at every resident that was bound anew since its load; what is so already is left alone. */
  follow(state: WorkerState): void {
    for (const id of this.#bound.keys()) if (!state.residents.has(id)) this.#bound.delete(id);
    for (const { residentId, cores } of state.residents.values()) {
      if (!cores || cores.length === 0) continue;
      const list = cores.join(',');
      const engine = this.#engines.get(residentId);
      if (!engine || this.#bound.get(residentId) === list || this.#binding.has(residentId)) continue;
      this.#binding.add(residentId);
      void this.#bind(engine.pid, list)
        .catch((error: unknown) => {
          const reason = error instanceof Error ? error.message : String(error);
          this.#log.warn({ residentId, cores: list, reason }, 'an engine could not be bound to its cores');
        })
        // Once tried it stays: an engine that cannot be bound goes on where it is.
        .finally(() => {
          this.#bound.set(residentId, list);
          this.#binding.delete(residentId);
        });
    }
  }

  async #bind(pid: number, list: string): Promise<void> {
    const taskset = findProgram('taskset', process.env['PATH']);
    if (taskset === undefined) throw new Error('there is no taskset on this machine');
    await run(taskset, ['-a', '-c', '-p', list, String(pid)], { timeout: MOST_MS });
  }
}

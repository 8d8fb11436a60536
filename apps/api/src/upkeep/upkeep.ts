import type { WorkerId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { Logger } from '#runtime/logger.js';
import type { Fleet } from '../fleet/fleet.js';

/** What passes by time alone is looked at this often. */
const TICK_MS = 1000;

/** One thing that is done for residents with nobody asking. */
export interface Chore {
  /** Looks at a worker that is there and whose agent is connected; what it decides goes through the log. */
  look(worker: WorkerState): void | Promise<void>;
}

export interface UpkeepOptions {
  readonly fleet: Fleet;
  readonly isConnected: (worker: WorkerId) => boolean;
  readonly chores: readonly Chore[];
  readonly logger: Logger;
}

/** Looks after the residents of every worker: once a second, and whenever a call ends that says so. */
export class Upkeep {
  readonly #o: UpkeepOptions;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Immediate | undefined;
  #looking: Promise<void> | undefined;
  #again = false;
  #stopped = false;

  constructor(options: UpkeepOptions) {
    this.#o = options;
  }

  start(): void {
    if (this.#stopped) return;
    this.#timer = setInterval(() => this.#look(), TICK_MS);
    this.#timer.unref();
    this.poke();
  }

  /** Something ended that may let a resident go at once. */
  poke(): void {
    if (this.#stopped) return;
    this.#soon ??= setImmediate(() => {
      this.#soon = undefined;
      this.#look();
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    clearImmediate(this.#soon);
    await this.#looking;
  }

  #look(): void {
    if (this.#looking) {
      this.#again = true;
      return;
    }
    this.#looking = this.#lookAtAll().finally(() => {
      this.#looking = undefined;
      if (this.#again && !this.#stopped) {
        this.#again = false;
        this.poke();
      }
    });
  }

  async #lookAtAll(): Promise<void> {
    const { fleet, isConnected, chores, logger } = this.#o;
    for (const id of fleet.workers.keys()) {
      for (const chore of chores) {
        const worker = fleet.worker(id);
        if (!worker?.registered || worker.lost || !isConnected(id) || this.#stopped) break;
        try {
          await chore.look(worker);
        } catch (error) {
          logger.warn({ err: error, worker: id }, 'residents could not be looked after');
        }
      }
    }
  }
}

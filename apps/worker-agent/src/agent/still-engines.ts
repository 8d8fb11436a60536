import type { ResidentId } from '#domain/ids.js';
import { formatSeconds } from '#domain/units.js';
import type { Logger } from '#runtime/logger.js';
import { hasWorked, type Work } from '../engines/work.js';
import type { RunningEngine } from '../ports.js';

export interface StillEnginesOptions {
  /** What serves now; one that loads is watched by its load. */
  readonly serving: () => readonly RunningEngine[];
  /** For how long one may answer nothing and do nothing. */
  readonly silenceMs: number;
  readonly log: Logger;
}

const MOST_BETWEEN_LOOKS_MS = 5000;
const LOOKS = 6;

interface Silence {
  readonly ms: number;
  readonly work: Work;
}

/**
 * Stops engines that stand still: they answer nothing, not whether they are well either, and use no processor. Calls on
 * them would wait until their clients give up. One that computes may leave a question unanswered for long, and is let be.
 */
export class StillEngines {
  readonly #o: StillEnginesOptions;
  readonly #everyMs: number;
  readonly #silent = new Map<ResidentId, Silence>();
  #timer: NodeJS.Timeout | undefined;
  #lookedMs = performance.now();
  #stopped = false;

  constructor(options: StillEnginesOptions) {
    this.#o = options;
    this.#everyMs = Math.min(MOST_BETWEEN_LOOKS_MS, options.silenceMs / LOOKS);
  }

  start(): this {
    this.#timer = setTimeout(() => {
      void this.#look().finally(() => {
        if (!this.#stopped) this.start();
      });
    }, this.#everyMs).unref();
    return this;
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #look(): Promise<void> {
    const serving = this.#o.serving();
    const answers = await Promise.all(serving.map((engine) => engine.answers(this.#everyMs)));
    const nowMs = performance.now();
    // An agent that was itself suspended has not listened meanwhile.
    const passedMs = Math.min(nowMs - this.#lookedMs, 2 * this.#everyMs);
    this.#lookedMs = nowMs;
    const ids = new Set(serving.map(({ residentId }) => residentId));
    for (const id of this.#silent.keys()) if (!ids.has(id)) this.#silent.delete(id);
    serving.forEach((engine, i) => {
      if (answers[i] === true) this.#silent.delete(engine.residentId);
      else this.#unanswered(engine, passedMs);
    });
  }

  #unanswered(engine: RunningEngine, passedMs: number): void {
    const { residentId } = engine;
    const work = engine.work();
    // Where the system does not tell what a process does, one that computes cannot be told from one that hangs.
    if (work === undefined) return;
    const before = this.#silent.get(residentId);
    const still = before !== undefined && !hasWorked(before.work, work, passedMs / 1000);
    const ms = still ? before.ms + passedMs : 0;
    this.#silent.set(residentId, { ms, work });
    if (ms < this.#o.silenceMs) return;
    this.#silent.delete(residentId);
    this.#o.log.error(
      { residentId, pid: engine.pid },
      `an engine has answered nothing and done nothing for ${formatSeconds(ms / 1000)}: it is stopped as crashed`,
    );
    engine.giveUp(ms / 1000);
  }
}

import { isDeepStrictEqual } from 'node:util';
import type { EngineOnWorker } from '#domain/events/worker-events.js';
import type { EngineKind } from '#domain/placement-terms.js';
import type { Logger } from '#runtime/logger.js';
import type { EngineDriver } from '../ports.js';

/** A look is a stat for each place where a program may be. */
const EVERY_MS = 5000;

export interface InstalledEnginesOptions {
  readonly drivers: readonly EngineDriver[];
  /** Tells the log what is installed now. */
  readonly say: (engines: readonly EngineOnWorker[]) => Promise<void>;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/**
 * The engines of this machine, as they are now: a program may be replaced, or installed, while the agent runs. What is
 * another is probed anew and told, so that the next decision is taken for it.
 */
export class InstalledEngines {
  readonly #o: InstalledEnginesOptions;
  readonly #known = new Map<EngineKind, EngineOnWorker | undefined>();
  #looking: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: InstalledEnginesOptions) {
    this.#o = options;
  }

  /** Probes every driver. @returns what is installed, the preferred one first */
  async probe(): Promise<readonly EngineOnWorker[]> {
    const probed = await Promise.all(
      this.#o.drivers.map(async (driver) => [driver.kind, await driver.probe()] as const),
    );
    for (const [kind, engine] of probed) this.#known.set(kind, engine);
    return this.#all();
  }

  /** Looks from now on, also when nothing is launched. */
  watch(): void {
    this.#timer = setInterval(() => void this.now(), EVERY_MS).unref();
  }

  /** What is installed, as it is at this moment. The log has been told of it, or cannot be told. */
  async now(): Promise<readonly EngineOnWorker[]> {
    this.#looking = this.#looking
      .then(() => this.#look())
      .catch((error: unknown) => {
        this.#o.log.warn({ reason: String(error) }, 'the engines could not be looked for again');
      });
    await this.#looking;
    return this.#all();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    const changed = this.#o.drivers.filter((driver) => driver.hasChanged?.() === true);
    if (changed.length === 0) return;
    const before = this.#all();
    for (const driver of changed) this.#known.set(driver.kind, await driver.probe());
    const after = this.#all();
    if (isDeepStrictEqual(before, after)) return;
    this.#o.log.info(
      { engines: after.map(({ kind, build }) => `${kind} ${build}`) },
      'other engines are installed now',
    );
    await this.#o.say(after);
  }

  #all(): readonly EngineOnWorker[] {
    return [...this.#known.values()].filter((engine) => engine !== undefined);
  }
}

import type { ResidentId } from '#domain/ids.js';
import type { EngineKind } from '#domain/placement-terms.js';
import type { EngineDriver, EngineExit, EngineStateFile, RunningEngine } from '../ports.js';

/** The engines that run now, by resident. What is here is a process; what is decided stands in the log. */
export class RunningEngines {
  readonly #running = new Map<ResidentId, RunningEngine>();
  readonly #stopping = new Set<ResidentId>();
  readonly #ended = new Set<ResidentId>();
  readonly #drivers: ReadonlyMap<EngineKind, EngineDriver>;

  constructor(drivers: readonly EngineDriver[]) {
    this.#drivers = new Map(drivers.map((driver) => [driver.kind, driver]));
  }

  driver(kind: EngineKind): EngineDriver | undefined {
    return this.#drivers.get(kind);
  }

  get(id: ResidentId): RunningEngine | undefined {
    return this.#running.get(id);
  }

  all(): readonly RunningEngine[] {
    return [...this.#running.values()];
  }

  /** `onExit` is called once when the process goes without having been told to. */
  add(engine: RunningEngine, onExit: (exit: EngineExit) => void): void {
    this.#running.set(engine.residentId, engine);
    void engine.exited.then((exit) => {
      // One that was started in its place is another.
      if (this.#running.get(engine.residentId) === engine) this.#running.delete(engine.residentId);
      if (!this.#stopping.delete(engine.residentId)) onExit(exit);
    });
  }

  /**
   * A resident has one end. An engine can go by itself while it is being evicted: whoever claims the end first says it,
   * the other says nothing.
   */
  claimEnd(id: ResidentId): boolean {
    if (this.#ended.has(id)) return false;
    this.#ended.add(id);
    return true;
  }

  /** Resolves when the process is gone. */
  async stop(id: ResidentId): Promise<void> {
    const engine = this.#running.get(id);
    if (!engine) return;
    this.#stopping.add(id);
    await engine.stop();
    await engine.exited;
  }

  async adopt(state: EngineStateFile): Promise<RunningEngine | undefined> {
    return this.#drivers.get(state.driver)?.adopt(state);
  }
}

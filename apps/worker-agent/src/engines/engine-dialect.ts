import type { MeasuredMemory } from '#domain/events/worker-events.js';
import type { EngineStateFile, ReadyFacts } from '../ports.js';

/** What differs between engines, once their process runs. */
export interface EngineDialect {
  /** Asks whether the process serves; may hold the answer until it does. */
  readonly healthPath: string;
  /** What opens it. */
  key(state: EngineStateFile): string;
  isServing(state: EngineStateFile): Promise<boolean>;
  /** @returns undefined when the process serves what the plan says; else what it serves instead. */
  wrongIdentity(state: EngineStateFile): Promise<string | undefined>;
  /** @returns undefined when the memory is where the plan said; else where it is instead. */
  readonly wrongPlacement?: (state: EngineStateFile, log: string) => string | undefined;
  /** Times of its own, where the engine tells them. */
  times(state: EngineStateFile): Promise<Partial<ReadyFacts>>;
  measure(state: EngineStateFile, log: string): Promise<MeasuredMemory>;
  requestsInFlight(state: EngineStateFile): Promise<number | undefined>;
  /** Its own way to stop; undefined when it has none. */
  readonly askToStop?: (state: EngineStateFile) => Promise<void>;
}

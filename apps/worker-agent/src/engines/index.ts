import type { Logger } from '#runtime/logger.js';
import type { EngineDriver } from '../ports.js';
import { BuiltInDriver } from './built-in-driver.js';
import { LlamaServerDriver } from './llama-server/driver.js';

export interface DriversOptions {
  /** Everything that engines leave on disk lies in its `engines` folder. */
  readonly home: string;
  /** Named by the settings; else one is looked for. */
  readonly llamaServerBin?: string;
  readonly log: Logger;
  readonly engineKey: (residentId: string) => string;
}

/** The engines that may be on this machine, the preferred one first. Each still has to pass its probe. */
export function createDrivers(options: DriversOptions): EngineDriver[] {
  return [new LlamaServerDriver(options), new BuiltInDriver(options)];
}

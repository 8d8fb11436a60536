import { DISK } from '../ids.js';
import { formatBytes } from '../units.js';
import type { WorkerLimits } from './state.js';

/** What models may take in Berth's own folder of them, and which tier says so. */
export interface DiskLimit {
  readonly bytes: number;
  readonly tier: keyof WorkerLimits;
}

/** The lower of what the start and an admin allow; undefined when neither limits it: then what is free on the drive counts alone. */
export function diskLimitOf({ designation, setting }: WorkerLimits): DiskLimit | undefined {
  const [atStart, set] = [designation.get(DISK), setting.get(DISK)];
  if (set !== undefined && set < (atStart ?? Infinity)) return { bytes: set, tier: 'setting' };
  return atStart === undefined ? undefined : { bytes: atStart, tier: 'designation' };
}

export interface DiskUse {
  /** Still to be fetched by this transfer. */
  readonly neededBytes: number;
  /** In the folder, with what is there of files that are not whole yet. */
  readonly thereBytes: number;
  /** Still to be fetched by other transfers. */
  readonly comingBytes: number;
}

/** @returns why a transfer would go beyond the limit, with the figures and the next step; undefined when it stays within. */
export function whyBeyondDisk(limit: DiskLimit, use: DiskUse, folder: string): string | undefined {
  const { neededBytes, thereBytes, comingBytes } = use;
  if (thereBytes + comingBytes + neededBytes <= limit.bytes) return undefined;
  const coming = comingBytes === 0 ? '' : ` and other transfers bring ${formatBytes(comingBytes)}`;
  const by = limit.tier === 'designation' ? 'set at start (disk-max)' : 'set by an admin';
  return (
    `${formatBytes(neededBytes)} are needed in ${folder}, where models take ${formatBytes(thereBytes)}${coming}; ` +
    `the limit ${by} is ${formatBytes(limit.bytes)}. Remove a model, pick a smaller quant, or raise the limit.`
  );
}

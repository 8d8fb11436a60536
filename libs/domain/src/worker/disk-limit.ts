import { DISK } from '../ids.js';
import { formatBytes } from '../units.js';
import type { WorkerLimits } from './state.js';

/** What models may take in Berth's own folder of them, and which tier says so. */
export interface DiskLimit {
  readonly bytes: number;
  readonly tier: keyof WorkerLimits;
}

/** Left free on the drive, for the log and everything else that is written. */
export const DISK_SPARE_BYTES = 256 * 1024 * 1024;

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

/** What a transfer may bring now: the least that the limit and the drive leave; undefined where neither is known. */
export function diskRoom(
  limit: DiskLimit | undefined,
  thereBytes: number,
  freeBytes: number | undefined,
): number | undefined {
  const left = [
    ...(limit === undefined ? [] : [limit.bytes - thereBytes]),
    ...(freeBytes === undefined ? [] : [freeBytes - DISK_SPARE_BYTES]),
  ];
  return left.length === 0 ? undefined : Math.max(0, Math.min(...left));
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

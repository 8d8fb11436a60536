import type { DeviceOnWorker } from '#domain/events/worker-events.js';

/** Memory that one process holds on a device. */
export interface GpuProcess {
  readonly pid: number;
  /** Undefined when the driver does not say (in containers, under some systems). */
  readonly bytes?: number;
}

/** One accelerator, whoever made it. What its driver does not say is left out: unknown is not zero. */
export interface GpuReading {
  readonly device: DeviceOnWorker;
  readonly usedBytes?: number;
  readonly utilizationPercent?: number;
  readonly temperatureCelsius?: number;
  readonly powerWatts?: number;
  /** Absent: the driver did not list processes. */
  readonly processes?: readonly GpuProcess[];
  /** What was used at the moment when the processes were listed, where that is another one than that of `usedBytes`. */
  readonly listedBytes?: number;
}

/** A figure with or without its unit (`11264 MiB`, `42 %`, `61`); undefined for `N/A`, `[N/A]`, `Insufficient…`. */
export function figure(text: string | undefined): number | undefined {
  const match = /^(-?\d+(?:\.\d+)?)(?:\s*[A-Za-z%]+)?$/.exec(text?.trim() ?? '');
  const value = match === null ? NaN : Number(match[1]);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Entries whose value is known. */
export function knownOf<T extends object>(fields: { readonly [K in keyof T]: T[K] | undefined }): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}

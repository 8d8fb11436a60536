import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { deviceId } from '#domain/ids.js';
import type { DeviceOnWorker } from '#domain/events/worker-events.js';
import { MIB } from '#domain/units.js';

export interface GpuReading {
  readonly device: DeviceOnWorker;
  /** Undefined when the driver does not say: unknown is not zero. */
  readonly usedBytes?: number;
}

const FIELDS = ['uuid', 'name', 'memory.total', 'memory.reserved', 'memory.used', 'compute_cap'] as const;
/** A driver that does not answer within this is taken as unknown. */
const TIMEOUT_MS = 5000;

/** Devices that `nvidia-smi` lists; empty where there is none. A driver that hangs or fails gives undefined. */
export async function readNvidia(): Promise<readonly GpuReading[] | undefined> {
  try {
    const { stdout } = await promisify(execFile)(
      'nvidia-smi',
      [`--query-gpu=${FIELDS.join(',')}`, '--format=csv,noheader,nounits'],
      { timeout: TIMEOUT_MS, killSignal: 'SIGKILL' },
    );
    return parseNvidia(stdout);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? [] : undefined;
  }
}

/** Lines of `--format=csv,noheader,nounits`; memory in MiB; a field that the driver cannot fill is `[N/A]`. */
export function parseNvidia(text: string): readonly GpuReading[] {
  return text
    .split('\n')
    .map((line) => line.split(',').map((field) => field.trim()))
    .filter((fields) => fields[0]?.startsWith('GPU-') === true)
    .flatMap(([uuid, name, total, reserved, used, capability]) => {
      const totalBytes = mib(total);
      // Without its size a device cannot be placed on; it is left out rather than guessed.
      if (uuid === undefined || totalBytes === undefined) return [];
      const reservedBytes = mib(reserved);
      const usedBytes = mib(used);
      const device: DeviceOnWorker = {
        deviceId: deviceId(uuid),
        kind: 'cuda',
        name: name ?? 'NVIDIA GPU',
        uuid,
        totalBytes,
        ...(reservedBytes === undefined ? {} : { driverReservedBytes: reservedBytes }),
        ...(known(capability) ? { computeCapability: capability } : {}),
      };
      return [{ device, ...(usedBytes === undefined ? {} : { usedBytes }) }];
    });
}

const known = (field: string | undefined): field is string =>
  field !== undefined && field !== '' && !field.startsWith('[');
const mib = (field: string | undefined): number | undefined => {
  const value = known(field) ? Number(field) : NaN;
  return Number.isFinite(value) ? value * MIB : undefined;
};

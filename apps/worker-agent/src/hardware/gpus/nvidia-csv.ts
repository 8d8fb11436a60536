import type { DeviceOnWorker } from '#domain/events/worker-events.js';
import { deviceId } from '#domain/ids.js';
import { MIB } from '#domain/units.js';
import { figure, type GpuReading, knownOf } from './gpu-reading.js';

/** Fields of `--query-gpu`, the newest last: a driver that does not know one says so, and is asked without it. */
export const NVIDIA_FIELDS = [
  'uuid',
  'name',
  'memory.total',
  'memory.used',
  'utilization.gpu',
  'temperature.gpu',
  'power.draw',
  'mig.mode.current',
  'memory.reserved',
  'compute_cap',
] as const;
export type NvidiaField = (typeof NVIDIA_FIELDS)[number];

export interface NvidiaCsvReading extends GpuReading {
  /** Its memory is handed out in parts, which are devices of their own. */
  readonly partitioned: boolean;
}

/** The field that a driver says it does not know (`Field "compute_cap" is not a valid field to query.`). */
export const unknownField = (text: string): string | undefined =>
  /Field "([^"]+)" is not a valid field/.exec(text)?.[1];

/**
 * Lines of `--format=csv,noheader,nounits`; memory in MiB; a field that the driver cannot fill is `[N/A]`,
 * `[Not Supported]` or `N/A`. A name may hold commas of its own.
 */
export function parseNvidia(
  text: string,
  fields: readonly NvidiaField[] = NVIDIA_FIELDS,
): readonly NvidiaCsvReading[] {
  return text.split('\n').flatMap((line) => {
    const parts = line.split(',').map((part) => part.trim());
    if (parts[0]?.startsWith('GPU-') !== true || parts.length < fields.length) return [];
    const name = fields.indexOf('name');
    const extra = parts.length - fields.length;
    if (extra > 0 && name >= 0) parts.splice(name, extra + 1, parts.slice(name, name + extra + 1).join(', '));
    const value = (field: NvidiaField) => {
      const i = fields.indexOf(field);
      return i < 0 ? undefined : parts[i];
    };
    return readingOf(value);
  });
}

function readingOf(value: (field: NvidiaField) => string | undefined): readonly NvidiaCsvReading[] {
  const uuid = value('uuid') ?? '';
  const totalBytes = mib(value('memory.total'));
  // Without its size a device cannot be placed on; it is left out rather than guessed.
  if (totalBytes === undefined || totalBytes === 0) return [];
  const capability = value('compute_cap');
  const device: DeviceOnWorker = {
    deviceId: deviceId(uuid),
    kind: 'cuda',
    name: value('name') ?? 'NVIDIA GPU',
    uuid,
    totalBytes,
    ...knownOf<Pick<DeviceOnWorker, 'driverReservedBytes' | 'computeCapability'>>({
      driverReservedBytes: mib(value('memory.reserved')),
      computeCapability: /^\d+\.\d+$/.test(capability ?? '') ? capability : undefined,
    }),
  };
  return [
    {
      device,
      partitioned: value('mig.mode.current') === 'Enabled',
      ...knownOf<GpuReading>({
        device: undefined,
        usedBytes: mib(value('memory.used')),
        utilizationPercent: figure(value('utilization.gpu')),
        temperatureCelsius: figure(value('temperature.gpu')),
        powerWatts: figure(value('power.draw')),
        processes: undefined,
      }),
    },
  ];
}

const mib = (field: string | undefined): number | undefined => {
  const value = figure(field);
  return value === undefined ? undefined : Math.round(value * MIB);
};

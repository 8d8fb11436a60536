import type { DeviceOnWorker } from '#domain/events/worker-events.js';
import { deviceId } from '#domain/ids.js';
import { MIB } from '#domain/units.js';
import { figure, type GpuProcess, type GpuReading, knownOf } from './gpu-reading.js';
import { at, every, parseXml, type XmlElement } from './xml.js';

/**
 * Devices of `nvidia-smi -q -x`: one for each card, or one for each part of a card that is partitioned (MIG), with the
 * processes on it. Which tags a report has differs between driver generations; what is missing is unknown.
 * @param listing output of `nvidia-smi -L`, which alone names the parts' own ids in older drivers.
 */
export function parseNvidiaXml(text: string, listing = ''): readonly GpuReading[] {
  const ids = partIds(listing);
  return parseXml(text)
    .filter(({ tag }) => tag === 'nvidia_smi_log')
    .flatMap((log) => every(log, 'gpu'))
    .flatMap((gpu) => readingsOf(gpu, ids));
}

function readingsOf(gpu: XmlElement, ids: PartIds): readonly GpuReading[] {
  const uuid = at(gpu, 'uuid')?.text ?? '';
  if (!uuid.startsWith('GPU-')) return [];
  const name = at(gpu, 'product_name')?.text ?? 'NVIDIA GPU';
  const power = at(gpu, 'gpu_power_readings') ?? at(gpu, 'power_readings');
  const shared = knownOf<GpuReading>({
    device: undefined,
    usedBytes: undefined,
    processes: undefined,
    utilizationPercent: figure(at(gpu, 'utilization', 'gpu_util')?.text),
    temperatureCelsius: figure(at(gpu, 'temperature', 'gpu_temp')?.text),
    powerWatts:
      figure(at(power, 'power_draw')?.text) ??
      figure(at(power, 'instant_power_draw')?.text) ??
      figure(at(power, 'average_power_draw')?.text),
  });
  const processes = at(gpu, 'processes');
  const parts = every(at(gpu, 'mig_devices'), 'mig_device');
  if (at(gpu, 'mig_mode', 'current_mig')?.text === 'Enabled') {
    return parts.flatMap((part) => {
      const index = figure(at(part, 'index')?.text);
      const id =
        at(part, 'uuid')?.text ?? (index === undefined ? undefined : ids.get(`${uuid} ${index}`)?.id);
      const profile = index === undefined ? undefined : ids.get(`${uuid} ${index}`)?.profile;
      const memory = memoryOf(part);
      // Without an id no engine can be told to use it; without a size nothing can be placed on it.
      if (id === undefined || memory.totalBytes === undefined) return [];
      const partOf = { uuid, profile: profile ?? `${Math.round(memory.totalBytes / 1024 / MIB)}gb` };
      const own = processesOf(
        processes,
        at(part, 'gpu_instance_id')?.text,
        at(part, 'compute_instance_id')?.text,
      );
      return [readingOf({ id, name: `${name} ${partOf.profile}`, memory, partOf }, own)];
    });
  }
  const memory = memoryOf(gpu);
  if (memory.totalBytes === undefined || memory.totalBytes === 0) return [];
  return [{ ...readingOf({ id: uuid, name, memory }, processesOf(processes)), ...shared }];
}

interface Memory {
  readonly totalBytes: number | undefined;
  readonly reservedBytes: number | undefined;
  readonly usedBytes: number | undefined;
}

function memoryOf(element: XmlElement): Memory {
  const memory = at(element, 'fb_memory_usage');
  const bytes = (tag: string) => {
    const value = figure(at(memory, tag)?.text);
    return value === undefined ? undefined : Math.round(value * MIB);
  };
  return { totalBytes: bytes('total'), reservedBytes: bytes('reserved'), usedBytes: bytes('used') };
}

function readingOf(
  found: {
    readonly id: string;
    readonly name: string;
    readonly memory: Memory;
    readonly partOf?: NonNullable<DeviceOnWorker['partOf']>;
  },
  processes: readonly GpuProcess[] | undefined,
): GpuReading {
  const { memory } = found;
  return {
    device: {
      deviceId: deviceId(found.id),
      kind: 'cuda',
      name: found.name,
      uuid: found.id,
      totalBytes: memory.totalBytes ?? 0,
      ...(memory.reservedBytes === undefined ? {} : { driverReservedBytes: memory.reservedBytes }),
      ...(found.partOf === undefined ? {} : { partOf: found.partOf }),
    },
    ...(memory.usedBytes === undefined ? {} : { usedBytes: memory.usedBytes }),
    ...(processes === undefined ? {} : { processes }),
  };
}

/** Processes of a card, or of one part of it. Undefined when the driver lists none at all (`N/A`). */
function processesOf(
  list: XmlElement | undefined,
  gpuInstance?: string,
  computeInstance?: string,
): readonly GpuProcess[] | undefined {
  if (list === undefined || (list.children.length === 0 && /N\/A/.test(list.text))) return undefined;
  return every(list, 'process_info').flatMap((info) => {
    if (gpuInstance !== undefined && at(info, 'gpu_instance_id')?.text !== gpuInstance) return [];
    if (computeInstance !== undefined && at(info, 'compute_instance_id')?.text !== computeInstance) return [];
    const pid = figure(at(info, 'pid')?.text);
    if (pid === undefined || !Number.isInteger(pid)) return [];
    const mib = figure(at(info, 'used_memory')?.text);
    return [{ pid, ...(mib === undefined ? {} : { bytes: Math.round(mib * MIB) }) }];
  });
}

type PartIds = ReadonlyMap<string, { readonly id: string; readonly profile: string }>;

/**
 * `GPU 0: <name> (UUID: GPU-…)` and below it `MIG 1g.10gb Device 0: (UUID: MIG-…)`, by the card's id and the part's
 * number.
 */
export function partIds(listing: string): PartIds {
  const ids = new Map<string, { id: string; profile: string }>();
  let card = '';
  for (const line of listing.split('\n')) {
    card = /^GPU \d+:.*\(UUID: (GPU-[^)]+)\)/.exec(line)?.[1] ?? card;
    const part = /^\s+MIG\s+(\S+)\s+Device\s+(\d+):\s+\(UUID: (MIG-[^)]+)\)/.exec(line);
    if (part?.[1] !== undefined && part[3] !== undefined) {
      ids.set(`${card} ${Number(part[2])}`, { id: part[3], profile: part[1] });
    }
  }
  return ids;
}

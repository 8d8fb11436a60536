import type { DeviceOnWorker, DeviceRoom } from '#domain/events/worker-events.js';
import { RAM, type DeviceId } from '#domain/ids.js';
import type { NeedTerm } from '#domain/placement-terms.js';
import { readMemory } from '../hardware/memory.js';
import type { GpuReading } from '../hardware/gpus/gpu-reading.js';
import { readGpus } from '../hardware/gpus/read-gpus.js';

/** Bytes that each device could give now, as the operating system and the driver say. Unknown is left out. */
export async function readRoom(devices: readonly DeviceId[]): Promise<readonly DeviceRoom[]> {
  const gpus = devices.some((id) => id !== RAM) ? (await readGpus()).readings : [];
  return roomOf(devices, readMemory().availableBytes, gpus);
}

/** An accelerator whose memory is the host's can give what the host can, up to its bound. */
export function roomOf(
  devices: readonly DeviceId[],
  ramBytes: number,
  gpus: readonly GpuReading[],
): readonly DeviceRoom[] {
  return devices.map((deviceId) => {
    if (deviceId === RAM) return { deviceId, bytes: ramBytes };
    const gpu = gpus.find((g) => g.device.deviceId === deviceId);
    if (gpu?.device.sharesRam === true) {
      return { deviceId, bytes: Math.min(gpu.device.totalBytes, ramBytes) };
    }
    if (gpu?.usedBytes === undefined) return { deviceId };
    const { totalBytes, driverReservedBytes = 0 } = gpu.device;
    return { deviceId, bytes: Math.max(0, totalBytes - driverReservedBytes - gpu.usedBytes) };
  });
}

export function needByDevice(need: readonly NeedTerm[]): ReadonlyMap<DeviceId, number> {
  const byDevice = new Map<DeviceId, number>();
  for (const term of need)
    byDevice.set(term.deviceId, (byDevice.get(term.deviceId) ?? 0) + (term.bytes ?? 0));
  return byDevice;
}

/** The same, with what accelerators take that have no memory of their own counted in RAM too. */
export function needWithShared(
  need: ReadonlyMap<DeviceId, number>,
  devices: readonly DeviceOnWorker[],
): ReadonlyMap<DeviceId, number> {
  const all = new Map(need);
  for (const { deviceId, sharesRam } of devices) {
    const bytes = need.get(deviceId);
    if (sharesRam === true && bytes !== undefined) all.set(RAM, (all.get(RAM) ?? 0) + bytes);
  }
  return all;
}

/** The first device whose room, as read now, is below the need; undefined when all hold it. */
export function tooSmall(
  need: ReadonlyMap<DeviceId, number>,
  room: readonly DeviceRoom[],
): { deviceId: DeviceId; needBytes: number; roomBytes: number | undefined } | undefined {
  for (const [deviceId, needBytes] of need) {
    if (needBytes === 0) continue;
    const roomBytes = room.find((r) => r.deviceId === deviceId)?.bytes;
    if (roomBytes === undefined || roomBytes < needBytes) return { deviceId, needBytes, roomBytes };
  }
  return undefined;
}

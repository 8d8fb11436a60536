import type { DeviceRoom } from '#domain/events/worker-events.js';
import { RAM, type DeviceId } from '#domain/ids.js';
import type { NeedTerm } from '#domain/placement-terms.js';
import { readMemory } from '../hardware/memory.js';
import { readGpus } from '../hardware/gpus/read-gpus.js';

/** Bytes that each device could give now, as the operating system and the driver say. Unknown is left out. */
export async function readRoom(devices: readonly DeviceId[]): Promise<readonly DeviceRoom[]> {
  const gpus = devices.some((id) => id !== RAM) ? (await readGpus()).readings : [];
  return devices.map((id) => {
    if (id === RAM) return { deviceId: id, bytes: readMemory().availableBytes };
    const gpu = gpus.find((g) => g.device.deviceId === id);
    return gpu?.usedBytes === undefined
      ? { deviceId: id }
      : {
          deviceId: id,
          bytes: Math.max(0, gpu.device.totalBytes - (gpu.device.driverReservedBytes ?? 0) - gpu.usedBytes),
        };
  });
}

export function needByDevice(need: readonly NeedTerm[]): ReadonlyMap<DeviceId, number> {
  const byDevice = new Map<DeviceId, number>();
  for (const term of need)
    byDevice.set(term.deviceId, (byDevice.get(term.deviceId) ?? 0) + (term.bytes ?? 0));
  return byDevice;
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

import { type DeviceId, RAM } from '../ids.js';
import type { WorkerState } from './state.js';

/** The smallest of what a device has, what was designated at the start and what is set; undefined when nothing is known. */
export function limitBytesOf(
  worker: Pick<WorkerState, 'ramBytes' | 'devices' | 'limits'>,
  deviceId: DeviceId,
): number | undefined {
  const device = worker.devices.find((d) => d.deviceId === deviceId);
  const capacity =
    deviceId === RAM
      ? worker.ramBytes
      : device && Math.max(0, device.totalBytes - (device.driverReservedBytes ?? 0));
  const { designation, setting } = worker.limits;
  const tiers = [capacity, designation.get(deviceId), setting.get(deviceId)].filter((b) => b !== undefined);
  return tiers.length === 0 ? undefined : Math.min(...tiers);
}

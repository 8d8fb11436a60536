import type { DeviceId } from '../ids.js';
import type { EventOf } from './envelope.js';

/** What one device said of itself; what it cannot say is left out. */
export interface DeviceReading {
  readonly deviceId: DeviceId;
  readonly usedBytes?: number;
  readonly utilizationPercent?: number;
  readonly temperatureCelsius?: number;
  readonly powerWatts?: number;
}

/** Stream `readings-<workerId>`, kept for an hour (`$maxAge`): for people to look at, never folded into a decision. */
export type ReadingsEvent = EventOf<
  'DevicesRead',
  { readonly takenAt: string; readonly devices: readonly DeviceReading[]; readonly cpuPercent?: number }
>;

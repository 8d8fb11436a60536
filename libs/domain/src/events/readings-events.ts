import type { DeviceId } from '../ids.js';
import type { EventOf } from './envelope.js';

/** What one device said of itself; what it cannot say is left out. */
export interface DeviceReading {
  readonly deviceId: DeviceId;
  readonly totalBytes?: number;
  readonly usedBytes?: number;
  /** Of what is used, what is not ours. */
  readonly foreignBytes?: number;
  readonly utilizationPercent?: number;
  readonly temperatureCelsius?: number;
  readonly powerWatts?: number;
}

/** Stream `readings-<workerId>`, kept for an hour (`$maxAge`): for people to look at, never folded into a decision. */
export type ReadingsEvent = EventOf<
  'DevicesRead',
  {
    readonly takenAt: string;
    readonly devices: readonly DeviceReading[];
    readonly cpuPercent?: number;
    /** Cores' worth of work in the last second by what is not ours. */
    readonly foreignBusyCores?: number;
    readonly swapUsedBytes?: number;
  }
>;

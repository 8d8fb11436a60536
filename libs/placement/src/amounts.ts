import type { DeviceId } from '#domain/ids.js';

/** Bytes on a few devices, in an order: what a map is too large for, where one is made for every plan that is priced. */
export class Amounts implements Iterable<readonly [DeviceId, number]> {
  readonly devices: readonly DeviceId[];
  /** On each of the devices. */
  readonly bytes: readonly number[];

  constructor(devices: readonly DeviceId[], bytes: readonly number[]) {
    this.devices = devices;
    this.bytes = bytes;
  }

  get(deviceId: DeviceId): number | undefined {
    const at = this.devices.indexOf(deviceId);
    return at < 0 ? undefined : this.bytes[at];
  }

  get total(): number {
    let sum = 0;
    for (const bytes of this.bytes) sum += bytes;
    return sum;
  }

  *[Symbol.iterator](): Iterator<readonly [DeviceId, number]> {
    for (let at = 0; at < this.devices.length; at++) {
      const deviceId = this.devices[at];
      if (deviceId !== undefined) yield [deviceId, this.bytes[at] ?? 0];
    }
  }
}

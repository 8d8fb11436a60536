import { type DeviceId, RAM } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import { Amounts } from './amounts.js';
import { memo } from './memo.js';

/**
 * Unified memory (Apple, processors with graphics): an accelerator's memory is the host's. It is one memory with two
 * bounds: what is placed on such a device takes RAM as well, and its room is never more than RAM's. What other
 * programs use is counted in RAM alone.
 */
export const sharingRam = memo(
  (devices: WorkerState['devices']): ReadonlySet<DeviceId> =>
    new Set(devices.filter((d) => d.sharesRam === true).map((d) => d.deviceId)),
);

/** The same bytes, and those of sharing devices in RAM too. */
export function alsoInRam(
  sharing: ReadonlySet<DeviceId>,
  bytes: Iterable<readonly [DeviceId, number]>,
): ReadonlyMap<DeviceId, number> {
  const all = new Map(bytes);
  let inRam = all.get(RAM) ?? 0;
  for (const [deviceId, held] of all) if (sharing.has(deviceId)) inRam += held;
  if (inRam > 0) all.set(RAM, inRam);
  return all;
}

/** What a plan must find room for; in all it takes no more than before. */
export class SharedAmounts extends Amounts {
  readonly #total: number;

  constructor(sharing: ReadonlySet<DeviceId>, amounts: Amounts) {
    const all = alsoInRam(sharing, amounts);
    super([...all.keys()], [...all.values()]);
    this.#total = amounts.total;
  }

  override get total(): number {
    return this.#total;
  }
}

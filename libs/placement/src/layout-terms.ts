import type { DeviceId } from '#domain/ids.js';
import type { Amounts } from './amounts.js';
import type { EvictionCandidate } from './eviction-candidate.js';
import type { Snapshot } from './snapshot.js';

/** Which layers of a plan go where. */
export interface Layout {
  readonly gpuLayers: number;
  readonly cpuMoeLayers: number;
  readonly blocksByDevice?: readonly number[];
}

export interface Pricing {
  /** Bytes that a layout of the shape would take on a device. */
  price(layout: Layout, deviceId: DeviceId): number;
  plan(layout: Layout): { readonly asked: Amounts };
}

/** What a device has for this plan without evicting anyone; nothing when its room is unknown. */
export const free = (snapshot: Snapshot, deviceId: DeviceId): number => {
  const room = snapshot.rooms.get(deviceId);
  return room?.roomBytes === undefined
    ? 0
    : Math.max(0, room.balanceBytes + (snapshot.credit.get(deviceId) ?? 0));
};

/** What a device would have for a plan when these went: never less than it has. */
export function roomWithout(
  snapshot: Snapshot,
  deviceId: DeviceId,
  victims: readonly EvictionCandidate[],
): number {
  const room = snapshot.rooms.get(deviceId);
  if (room?.roomBytes === undefined) return 0;
  let bytes = room.balanceBytes + (snapshot.credit.get(deviceId) ?? 0);
  for (const { frees } of victims) bytes += frees.get(deviceId) ?? 0;
  return Math.max(0, bytes);
}

/**
 * The least n in [from, to] for which `holds`, which stays true once it is; undefined when it never is.
 * @param guess where it probably begins to hold: two looks tell whether it does
 */
export function least(
  from: number,
  to: number,
  holds: (n: number) => boolean,
  guess?: () => number | undefined,
): number | undefined {
  // On a roomy machine the first holds already, and on a full one not even the last does.
  if (holds(from)) return from;
  if (!holds(to)) return undefined;
  let low = from + 1;
  let high = to;
  const near = guess?.();
  if (near !== undefined && near > low && near < high) {
    if (holds(near)) high = near;
    else low = near + 1;
    if (high === near && !holds(near - 1)) return near;
    if (high === near) high = near - 1;
  }
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Whole shares in proportion to the weights, by largest remainder; the earlier one of equals. */
export function shares(total: number, weights: readonly number[]): readonly number[] {
  const sum = weights.reduce((a, b) => a + b, 0);
  const exact = weights.map((w) => (total * w) / sum);
  const whole = exact.map(Math.floor);
  const order = exact
    .map((value, i) => ({ i, rest: value - Math.floor(value) }))
    .sort((a, b) => b.rest - a.rest || a.i - b.i);
  let left = total - whole.reduce((a, b) => a + b, 0);
  for (const { i } of order) {
    if (left-- <= 0) break;
    whole[i] = (whole[i] ?? 0) + 1;
  }
  return whole;
}

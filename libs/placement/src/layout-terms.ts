import type { DeviceId } from '#domain/ids.js';
import type { Amounts } from './amounts.js';
import type { BytesByDevice } from './charges.js';
import { type EvictionField, evictionSetOf } from './eviction.js';
import type { EvictionCandidate, EvictionSet } from './eviction-candidate.js';
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

/** What a device would have for a plan when these went, its own resident's bytes counted for it; nothing when its room is unknown. */
export function roomWithout(
  { rooms, credit }: Snapshot,
  deviceId: DeviceId,
  victims: readonly EvictionCandidate[],
): number {
  const room = rooms.get(deviceId);
  if (room?.roomBytes === undefined) return 0;
  let bytes = room.balanceBytes + (credit.get(deviceId) ?? 0);
  for (const { frees } of victims) bytes += frees.get(deviceId) ?? 0;
  return Math.max(0, bytes);
}

export const NOBODY: readonly EvictionCandidate[] = [];

/** The same without evicting anyone. */
export const free = (snapshot: Snapshot, deviceId: DeviceId): number =>
  roomWithout(snapshot, deviceId, NOBODY);

/** Whom the room of a plan takes; undefined when nobody's going makes enough of it. */
export const evictionFor = (
  snapshot: Snapshot,
  plan: { readonly asked: Amounts },
  field: EvictionField,
): EvictionSet | undefined =>
  evictionSetOf(deficitsOf(snapshot, plan.asked), field, snapshot.input.settings.evictionOrder);

/** What the devices lack for a plan, its own residents' bytes counted for it. */
function deficitsOf({ rooms, credit }: Snapshot, { devices, bytes }: Amounts): BytesByDevice {
  const deficits = new Map<DeviceId, number>();
  devices.forEach((deviceId, i) => {
    const has = (rooms.get(deviceId)?.balanceBytes ?? 0) + (credit.get(deviceId) ?? 0);
    if ((bytes[i] ?? 0) > has) deficits.set(deviceId, (bytes[i] ?? 0) - has);
  });
  return deficits;
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

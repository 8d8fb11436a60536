import { type DeviceId, RAM, type ResidentId } from '#domain/ids.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { type BytesByDevice, type Charge, chargesOf } from './charges.js';
import { memo } from './memo.js';

/** What a device has now, with every figure that its room came from. */
export interface Room {
  readonly deviceId: DeviceId;
  /** D: what it has minus the driver's own. */
  readonly capacityBytes?: number;
  /** M: the smallest of device, designation and setting. */
  readonly limitBytes?: number;
  readonly limitTier: 'device' | 'designation' | 'setting';
  /** U: measured bytes of residents. */
  readonly residentsBytes: number;
  /** X: foreign use; absent without a reading. */
  readonly foreignBytes?: number;
  /** max(0, X − (D − M)): foreign use that eats into the limit. */
  readonly encroachmentBytes: number;
  /** Budgets of plans that are not ready yet. */
  readonly reservedBytes: number;
  /** Left out when it is unknown: nothing new is admitted then. */
  readonly roomBytes?: number;
  /** Room before it is cut off at 0: what must be freed first on a device that is over its limit. */
  readonly balanceBytes: number;
  /** Why the room is unknown, in words. */
  readonly unknown?: string;
}

export interface RoomFigures {
  readonly capacityBytes: number;
  readonly limitBytes: number;
  readonly residentsBytes: number;
  readonly foreignBytes: number;
  readonly reservedBytes: number;
}

export const encroachment = (f: Pick<RoomFigures, 'capacityBytes' | 'limitBytes' | 'foreignBytes'>): number =>
  Math.max(0, f.foreignBytes - Math.max(0, f.capacityBytes - f.limitBytes));

/** room = max(0, M − U − encroachment − reserved). */
export const roomBytes = (f: RoomFigures): number => Math.max(0, balanceBytes(f));

const balanceBytes = (f: RoomFigures): number =>
  f.limitBytes - f.residentsBytes - encroachment(f) - f.reservedBytes;

export interface Tier {
  readonly capacityBytes: number;
  readonly limitBytes: number;
  readonly limitTier: Room['limitTier'];
}

/** D and M of a device; undefined when the worker has not said what it has. */
export function tierOf(worker: WorkerState, deviceId: DeviceId): Tier | undefined {
  const capacity = capacityOf(worker, deviceId);
  if (capacity === undefined) return undefined;
  let tier: Tier = { capacityBytes: capacity, limitBytes: capacity, limitTier: 'device' };
  for (const limitTier of ['designation', 'setting'] as const) {
    const limit = worker.limits[limitTier].get(deviceId);
    if (limit !== undefined && limit < tier.limitBytes) tier = { ...tier, limitBytes: limit, limitTier };
  }
  return tier;
}

function capacityOf(worker: WorkerState, deviceId: DeviceId): number | undefined {
  if (deviceId === RAM) return worker.ramBytes;
  const device = worker.devices.find((d) => d.deviceId === deviceId);
  return device && Math.max(0, device.totalBytes - (device.driverReservedBytes ?? 0));
}

/** Accelerators in the order of their ids; the CPU and RAM are none. */
export const acceleratorsOf = (worker: Pick<WorkerState, 'devices'>): readonly DeviceId[] =>
  worker.devices
    .filter((d) => d.kind !== 'cpu' && d.deviceId !== RAM)
    .map((d) => d.deviceId)
    .sort();

/** Room of RAM and of every accelerator, in the order of their ids; kept as long as the state that it was read from. */
export const roomsOf = memo((worker: WorkerState): readonly Room[] =>
  [RAM, ...acceleratorsOf(worker)].map((deviceId) => roomOf(worker, deviceId)),
);

/** Room of one device. */
export function roomOf(worker: WorkerState, deviceId: DeviceId): Room {
  const tier = tierOf(worker, deviceId);
  const {
    residentsBytes,
    reservedBytes,
    unknown: stranger,
  } = usedByDevice(worker).get(deviceId) ?? NOTHING_USED;
  const used = { deviceId, residentsBytes, reservedBytes };
  if (!tier) {
    return {
      ...used,
      limitTier: 'device',
      encroachmentBytes: 0,
      balanceBytes: 0,
      unknown: `the worker has not said how much ${nameOf(deviceId)} it has`,
    };
  }
  const foreignBytes = worker.foreign.get(deviceId);
  if (foreignBytes === undefined) {
    return {
      ...used,
      ...tier,
      encroachmentBytes: 0,
      balanceBytes: 0,
      unknown: `no reading yet of what other programs use of ${nameOf(deviceId)}`,
    };
  }
  const figures = { ...tier, foreignBytes, residentsBytes, reservedBytes };
  const known = { ...used, ...tier, foreignBytes, encroachmentBytes: encroachment(figures) };
  // A resident whose size is unknown takes the device for itself.
  if (stranger) return { ...known, roomBytes: 0, balanceBytes: Math.min(0, balanceBytes(figures)) };
  return { ...known, roomBytes: roomBytes(figures), balanceBytes: balanceBytes(figures) };
}

interface Used {
  residentsBytes: number;
  reservedBytes: number;
  unknown: boolean;
}

/** What residents and plans take on each device, in one walk over them. */
const usedByDevice = memo((worker: WorkerState): ReadonlyMap<DeviceId, Readonly<Used>> => {
  const charges = chargesOf(worker);
  const used = new Map<DeviceId, Used>();
  const on = (deviceId: DeviceId): Used => {
    let entry = used.get(deviceId);
    if (!entry) used.set(deviceId, (entry = { residentsBytes: 0, reservedBytes: 0, unknown: false }));
    return entry;
  };
  for (const resident of worker.residents.values()) {
    const charge = charges.get(resident.residentId);
    if (!charge) continue;
    for (const deviceId of charge.unknownOn) on(deviceId).unknown = true;
    for (const [deviceId, bytes] of charge.bytes) {
      if (resident.phase === 'ready') on(deviceId).residentsBytes += bytes;
      else on(deviceId).reservedBytes += Math.max(0, bytes - creditOf(worker, resident, deviceId, charges));
    }
  }
  return used;
});

const NOTHING_USED: Readonly<Used> = { residentsBytes: 0, reservedBytes: 0, unknown: false };

/** What the victims of a resident's own decision still hold: it will be freed for that resident alone. */
function creditOf(
  worker: WorkerState,
  planned: Resident,
  deviceId: DeviceId,
  charges: ReadonlyMap<ResidentId, Charge>,
): number {
  let credit = 0;
  for (const victim of worker.openDecisions.get(planned.decisionId)?.data.victims ?? []) {
    const resident = worker.residents.get(victim.residentId);
    if (resident?.leaving?.by !== planned.decisionId) continue;
    credit += charges.get(victim.residentId)?.bytes.get(deviceId) ?? 0;
  }
  return credit;
}

export const nameOf = (deviceId: DeviceId): string => (deviceId === RAM ? 'RAM' : `device ${deviceId}`);

/** Adds bytes by device. */
export function plus(a: BytesByDevice, b: BytesByDevice): BytesByDevice {
  const sum = new Map(a);
  for (const [deviceId, bytes] of b) sum.set(deviceId, (sum.get(deviceId) ?? 0) + bytes);
  return sum;
}

/**
 * A setting above its parent tier is refused, naming the tier and both figures.
 * @returns the parent that the value is above, or undefined when it may be set.
 */
export function limitAboveParent(
  worker: WorkerState,
  deviceId: DeviceId,
  tier: 'designation' | 'setting',
  value: number,
): { readonly tier: 'device' | 'designation'; readonly bytes: number } | undefined {
  const capacity = capacityOf(worker, deviceId);
  const designation = worker.limits.designation.get(deviceId);
  if (tier === 'setting' && designation !== undefined && value > designation)
    return { tier: 'designation', bytes: designation };
  if (capacity !== undefined && value > capacity) return { tier: 'device', bytes: capacity };
  return undefined;
}

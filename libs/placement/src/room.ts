import { type DeviceId, DISK, RAM, type ResidentId } from '#domain/ids.js';
import { sameList } from '#domain/placement-terms.js';
import { formatBytes } from '#domain/units.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { type BytesByDevice, type Charge, chargesOf, compareText } from './charges.js';
import { lastOfWorker } from './memo.js';
import { sharingRam } from './shared-memory.js';

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
  /** Budgets of plans that are not ready yet. An engine of ours holds all of its cache once it is loaded: then nothing is kept for it. */
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

const encroached = (capacityBytes: number, limitBytes: number, foreignBytes: number): number =>
  Math.max(0, foreignBytes - Math.max(0, capacityBytes - limitBytes));

export const encroachment = (f: Pick<RoomFigures, 'capacityBytes' | 'limitBytes' | 'foreignBytes'>): number =>
  encroached(f.capacityBytes, f.limitBytes, f.foreignBytes);

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
  const { designation, setting } = worker.limits;
  let limitBytes = capacity;
  let limitTier: Tier['limitTier'] = 'device';
  const set = designation.get(deviceId);
  if (set !== undefined && set < limitBytes) {
    limitBytes = set;
    limitTier = 'designation';
  }
  const lower = setting.get(deviceId);
  if (lower !== undefined && lower < limitBytes) {
    limitBytes = lower;
    limitTier = 'setting';
  }
  return { capacityBytes: capacity, limitBytes, limitTier };
}

/** D: what it has minus the driver's own; undefined for a device that the worker has not told of. */
export function capacityOf(worker: WorkerState, deviceId: DeviceId): number | undefined {
  if (deviceId === RAM) return worker.ramBytes;
  if (deviceId === DISK) return worker.drives?.[0]?.totalBytes;
  const device = worker.devices.find((d) => d.deviceId === deviceId);
  return device && Math.max(0, device.totalBytes - (device.driverReservedBytes ?? 0));
}

/** Accelerators in the order of their ids; the CPU and RAM are none. */
export const acceleratorsOf = (worker: Pick<WorkerState, 'devices'>): readonly DeviceId[] =>
  worker.devices
    .filter((d) => d.kind !== 'cpu' && d.deviceId !== RAM)
    .map((d) => d.deviceId)
    .sort();

function itself(worker: WorkerState): WorkerState {
  return worker;
}

/** Room of RAM and of every accelerator, in the order of their ids; kept as long as the state that it was read from. */
export const roomsOf = lastOfWorker(itself, (worker): readonly Room[] =>
  [RAM, ...acceleratorsOf(worker)].map((deviceId) => roomOf(worker, deviceId)),
);

/** Accelerators, most room first. The list is the same one as long as their order is. */
export const mostRoomFirst = lastOfWorker(
  itself,
  (worker, last: readonly DeviceId[] | undefined): readonly DeviceId[] => {
    const sorted = roomsOf(worker)
      .filter((room) => room.deviceId !== RAM)
      .sort((a, b) => (b.roomBytes ?? -1) - (a.roomBytes ?? -1) || compareText(a.deviceId, b.deviceId))
      .map((room) => room.deviceId);
    return last && sameList(last, sorted) ? last : sorted;
  },
);

/** Room of one device. */
export function roomOf(worker: WorkerState, deviceId: DeviceId): Room {
  const tier = tierOf(worker, deviceId);
  const used = usedByDevice(worker).get(deviceId) ?? NOTHING_USED;
  const { residentsBytes, reservedBytes } = used;
  const shares = sharingRam(worker.devices).has(deviceId);
  const foreignBytes = shares ? 0 : worker.foreign.get(deviceId);
  if (!tier || foreignBytes === undefined) {
    const unknown = tier
      ? notRead(worker, deviceId)
      : `the worker has not said how much ${nameOf(deviceId)} it has`;
    const nothing = { encroachmentBytes: 0, balanceBytes: 0, unknown };
    return { deviceId, residentsBytes, reservedBytes, limitTier: 'device', ...tier, ...nothing };
  }
  const { capacityBytes, limitBytes, limitTier } = tier;
  const encroachmentBytes = encroached(capacityBytes, limitBytes, foreignBytes);
  const own = limitBytes - residentsBytes - encroachmentBytes - reservedBytes;
  const ram = shares ? roomOf(worker, RAM) : undefined;
  if (ram?.unknown !== undefined) {
    return {
      deviceId,
      residentsBytes,
      reservedBytes,
      ...tier,
      encroachmentBytes: 0,
      balanceBytes: 0,
      unknown: ram.unknown,
    };
  }
  const balance = Math.min(own, ram?.balanceBytes ?? own);
  return {
    deviceId,
    residentsBytes,
    reservedBytes,
    capacityBytes,
    limitBytes,
    limitTier,
    foreignBytes,
    encroachmentBytes,
    // A resident whose size is unknown takes the device for itself.
    roomBytes: used.unknown ? 0 : Math.max(0, balance),
    balanceBytes: used.unknown ? Math.min(0, balance) : balance,
  };
}

/** Why nothing is known of a device's use, and what was, since when. */
function notRead({ silent }: WorkerState, deviceId: DeviceId): string {
  const last = silent.get(deviceId);
  if (last === undefined) return `no reading yet of what other programs use of ${nameOf(deviceId)}`;
  const used =
    last.foreignBytes === undefined
      ? ''
      : `; other programs used ${formatBytes(last.foreignBytes)} of it then`;
  return `its driver has not told what is used of ${nameOf(deviceId)} since ${last.since}${used}`;
}

interface Used {
  readonly residentsBytes: number;
  readonly reservedBytes: number;
  readonly unknown: boolean;
}

/** Sums of one walk: what is ready and what is reserved, by the place of a device. */
let sums = new Float64Array(64);

/** What residents and plans take on each device, in one walk over them. */
const usedByDevice = lastOfWorker(itself, (worker): ReadonlyMap<DeviceId, Used> => {
  const charges = chargesOf(worker);
  const places = new Map<DeviceId, number>();
  const unknown = new Set<number>();
  const placeOf = (deviceId: DeviceId): number => {
    let place = places.get(deviceId);
    if (place === undefined) {
      place = places.size;
      places.set(deviceId, place);
      if (sums.length < 2 * place + 2)
        sums = Float64Array.from({ length: 4 * place }, (_, i) => sums[i] ?? 0);
      sums[2 * place] = 0;
      sums[2 * place + 1] = 0;
    }
    return place;
  };
  let resident: Resident;
  const add = (bytes: number, deviceId: DeviceId): void => {
    const ready = resident.phase === 'ready';
    const still = ready ? bytes : Math.max(0, bytes - creditOf(worker, resident, deviceId, charges));
    const at = 2 * placeOf(deviceId) + (ready ? 0 : 1);
    sums[at] = (sums[at] ?? 0) + still;
  };
  for (resident of worker.residents.values()) {
    const charge = charges.get(resident.residentId);
    if (!charge) continue;
    for (const deviceId of charge.unknownOn) unknown.add(placeOf(deviceId));
    charge.bytes.forEach(add);
  }
  const used = new Map<DeviceId, Used>();
  for (const [deviceId, place] of places)
    used.set(deviceId, {
      residentsBytes: sums[2 * place] ?? 0,
      reservedBytes: sums[2 * place + 1] ?? 0,
      unknown: unknown.has(place),
    });
  return used;
});

const NOTHING_USED: Used = { residentsBytes: 0, reservedBytes: 0, unknown: false };

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

export const nameOf = (deviceId: DeviceId): string =>
  deviceId === RAM ? 'RAM' : deviceId === DISK ? 'the drive of models' : `device ${deviceId}`;

/** Adds bytes by device. */
export function plus(a: BytesByDevice, b: BytesByDevice): BytesByDevice {
  const sum = new Map(a);
  for (const [deviceId, bytes] of b) sum.set(deviceId, (sum.get(deviceId) ?? 0) + bytes);
  return sum;
}

/**
 * A setting above its parent tier is refused, naming the tier and both figures. Bytes of a device, or a number of cores.
 * @returns the parent that the value is above, or undefined when it may be set.
 */
export function limitAboveParent(
  worker: WorkerState,
  resource: DeviceId | 'cores',
  value: number,
): { readonly tier: 'device' | 'designation'; readonly value: number } | undefined {
  const capacity = resource === 'cores' ? worker.physicalCores : capacityOf(worker, resource);
  const designation = worker.limits.designation.get(resource);
  if (designation !== undefined && designation <= (capacity ?? Infinity))
    return value > designation ? { tier: 'designation', value: designation } : undefined;
  return capacity !== undefined && value > capacity ? { tier: 'device', value: capacity } : undefined;
}

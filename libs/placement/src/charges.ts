import { type DeviceId, type ModelKey, RAM, type ResidentId } from '#domain/ids.js';
import { type NeedTerm, sumOf } from '#domain/placement-terms.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { lastOfWorker, memo } from './memo.js';
import { alsoInRam, sharingRam } from './shared-memory.js';

/** Bytes by device; a device that is not named has none. */
export type BytesByDevice = ReadonlyMap<DeviceId, number>;

/** What a resident counts for on each device now. */
export interface Charge {
  readonly residentId: ResidentId;
  readonly bytes: BytesByDevice;
  /** Devices on which the size cannot be told: nobody else may be placed there while it stays. */
  readonly unknownOn: ReadonlySet<DeviceId>;
}

/** Sum of a plan's terms by device. Terms without a figure are left out; see `unknownDevices`. */
export function termsByDevice(terms: readonly NeedTerm[]): BytesByDevice {
  const sums = new Map<DeviceId, number>();
  for (const term of terms) sums.set(term.deviceId, (sums.get(term.deviceId) ?? 0) + (term.bytes ?? 0));
  return sums;
}

/** Devices on which a plan's weights or KV cache are unknown: it may be tried there only alone. */
export function unknownDevices(terms: readonly NeedTerm[]): ReadonlySet<DeviceId> {
  return new Set(
    terms
      .filter((t) => t.bytes === undefined && (t.term === 'weights' || t.term === 'kv'))
      .map((t) => t.deviceId),
  );
}

/**
 * A resident counts with its plan's need until it is ready, and with what was measured afterwards. In RAM a ready one
 * counts with at least its plan's RAM need, so that mapped weights can stay: max(anonymous, need), where a measured
 * resident with its weights in RAM has its measurement as need.
 */
export const chargeOf = memo((resident: Resident): Charge => {
  const { residentId, measured } = resident;
  const planned = termsByDevice(resident.need);
  const unknownOn = new Set(unknownDevices(resident.need));
  if (resident.phase !== 'ready' || !measured) return { residentId, bytes: planned, unknownOn };
  const bytes = new Map(planned);
  for (const device of measured.byDevice) {
    if (device.deviceId === RAM) continue;
    bytes.set(device.deviceId, sumOf(device));
    unknownOn.delete(device.deviceId);
  }
  const ram = measured.byDevice.find((d) => d.deviceId === RAM);
  const inRam = resident.contract.gpuLayers === 0 && ram ? sumOf(ram) : (planned.get(RAM) ?? 0);
  bytes.set(RAM, Math.max(measured.hostAnonymousBytes, inRam));
  unknownOn.delete(RAM);
  return { residentId, bytes, unknownOn };
});

/** Mapped weights in RAM: two residents of one file share its pages. */
function mappedBytes(resident: Resident): number {
  const ram = resident.measured?.byDevice.find((d) => d.deviceId === RAM);
  if (ram && resident.contract.gpuLayers === 0) return ram.weightsBytes;
  return resident.need.reduce(
    (sum, t) => sum + (t.deviceId === RAM && t.term === 'weights' ? (t.bytes ?? 0) : 0),
    0,
  );
}

/** What is worked out for all residents of a worker together. */
type Residing = Pick<WorkerState, 'workerId' | 'residents'>;

const residentsOf = ({ residents }: Residing): WorkerState['residents'] => residents;

const ownCharges = lastOfWorker(residentsOf, (worker: Residing): ReadonlyMap<ResidentId, Charge> => {
  const charges = new Map<ResidentId, Charge>();
  const models = new Map<ModelKey, Resident>();
  const others: Resident[] = [];
  for (const resident of residentsById(worker)) {
    const charge = chargeOf(resident);
    const first = models.get(resident.modelKey);
    if (!first) models.set(resident.modelKey, resident);
    const sharesFile = (other: Resident): boolean =>
      other.modelKey === resident.modelKey && other.artifact === resident.artifact;
    const shared = first !== undefined && (sharesFile(first) || others.some(sharesFile));
    if (first && !shared) others.push(resident);
    charges.set(resident.residentId, shared ? withoutMapped(charge, resident) : charge);
  }
  return charges;
});

const chargesInOneMemory = lastOfWorker(
  residentsOf,
  (worker: Residing & Pick<WorkerState, 'devices'>): ReadonlyMap<ResidentId, Charge> => {
    const sharing = sharingRam(worker.devices);
    const charges = new Map<ResidentId, Charge>();
    for (const [id, charge] of ownCharges(worker)) {
      const unknown = [...charge.unknownOn].some((deviceId) => sharing.has(deviceId));
      charges.set(id, {
        ...charge,
        bytes: alsoInRam(sharing, charge.bytes),
        unknownOn: unknown ? new Set([...charge.unknownOn, RAM]) : charge.unknownOn,
      });
    }
    return charges;
  },
);

/**
 * Charges of all residents, by id. One mapped file is counted once: the first resident by id carries it, the others
 * count with what is theirs alone.
 */
export const chargesOf = (
  worker: Residing & Pick<WorkerState, 'devices'>,
): ReadonlyMap<ResidentId, Charge> =>
  sharingRam(worker.devices).size === 0 ? ownCharges(worker) : chargesInOneMemory(worker);

function withoutMapped(charge: Charge, resident: Resident): Charge {
  const anonymous = resident.phase === 'ready' ? (resident.measured?.hostAnonymousBytes ?? 0) : 0;
  const own = Math.max(anonymous, (charge.bytes.get(RAM) ?? 0) - mappedBytes(resident));
  return { ...charge, bytes: new Map(charge.bytes).set(RAM, Math.max(0, own)) };
}

/** In the order of their ids, so that the order in which a fold kept them never matters. */
export const residentsById = lastOfWorker(
  residentsOf,
  ({ residents }: Residing, last?: readonly Resident[]): readonly Resident[] =>
    inOrderOf(last, residents) ??
    [...residents.values()].sort((a, b) => compareText(a.residentId, b.residentId)),
);

/** Most events change a resident and leave the others: then the ids, and so their order, are those of the last time. */
function inOrderOf(
  last: readonly Resident[] | undefined,
  residents: WorkerState['residents'],
): readonly Resident[] | undefined {
  if (last?.length !== residents.size) return undefined;
  const sorted: Resident[] = [];
  for (const { residentId } of last) {
    const resident = residents.get(residentId);
    if (!resident) return undefined;
    sorted.push(resident);
  }
  return sorted;
}

/** Residents of a model that stay, in the order of their ids. */
export const residentsOfModel = (worker: Residing, modelKey: ModelKey): readonly Resident[] =>
  byModel(worker).get(modelKey) ?? [];

const byModel = lastOfWorker(residentsOf, (worker: Residing): ReadonlyMap<ModelKey, readonly Resident[]> => {
  const models = new Map<ModelKey, Resident[]>();
  for (const resident of residentsById(worker)) {
    if (resident.leaving) continue;
    const same = models.get(resident.modelKey);
    if (same) same.push(resident);
    else models.set(resident.modelKey, [resident]);
  }
  return models;
});

export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

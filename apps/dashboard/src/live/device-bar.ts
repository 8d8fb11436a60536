import type { DeviceItem, ResidentItem } from '#domain/wire/index.js';

/** What holds a part of a device. `budget`: decided and still loading, by its plan. `others`: programs that are not Berth's. */
export interface BarPart {
  readonly kind: 'resident' | 'budget' | 'leaving' | 'others';
  readonly key: string;
  readonly label: string;
  readonly bytes: number;
}

/** A device as a bar from nothing to what Berth may use of it; the rules are those of the placement's room. */
export interface DeviceBar {
  readonly parts: readonly BarPart[];
  /** What the whole bar stands for: the limit, or more where more is held. */
  readonly scaleBytes: number;
  /** What Berth may use at most. */
  readonly limitBytes: number;
  /** Free for a placement; undefined without a reading of what others use. */
  readonly roomBytes?: number;
  readonly heldBytes: number;
  readonly budgetBytes: number;
  /** What others take of that which Berth may use. */
  readonly encroachmentBytes: number;
}

/** @returns undefined while the device's size is not known. */
export function barOf(device: DeviceItem, residents: readonly ResidentItem[]): DeviceBar | undefined {
  if (device.totalBytes === undefined) return undefined;
  const most = Math.max(0, device.totalBytes - (device.reservedBytes ?? 0));
  const limitBytes = Math.min(device.limitBytes ?? most, most);
  const own = residents.filter((resident) => resident.workerId === device.workerId);
  const here = own
    .flatMap((resident) => partOf(resident, device.deviceId, own))
    .sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || b.bytes - a.bytes);
  const sum = (kinds: readonly BarPart['kind'][]) =>
    here.filter(({ kind }) => kinds.includes(kind)).reduce((total, { bytes }) => total + bytes, 0);
  const heldBytes = sum(['resident', 'leaving']);
  const budgetBytes = sum(['budget']);
  const encroachmentBytes = Math.max(0, (device.foreignBytes ?? 0) - (most - limitBytes));
  const others: readonly BarPart[] =
    encroachmentBytes > 0
      ? [{ kind: 'others', key: 'others', label: 'other programs', bytes: encroachmentBytes }]
      : [];
  const used = heldBytes + budgetBytes + encroachmentBytes;
  return {
    parts: [...here, ...others],
    scaleBytes: Math.max(limitBytes, used, 1),
    limitBytes,
    heldBytes,
    budgetBytes,
    encroachmentBytes,
    ...(device.foreignBytes === undefined ? {} : { roomBytes: Math.max(0, limitBytes - used) }),
  };
}

const ORDER = { resident: 0, leaving: 1, budget: 2, others: 3 } as const;

function partOf(resident: ResidentItem, deviceId: string, all: readonly ResidentItem[]): readonly BarPart[] {
  const kind = resident.leaving ? 'leaving' : resident.phase === 'ready' ? 'resident' : 'budget';
  const heir = kind === 'leaving' ? all.find((each) => makesRoomFor(resident, each)) : undefined;
  const held = bytesOn(resident, deviceId);
  // What its victims still hold is promised to it already: counted twice, the device would look overfull.
  const bytes =
    kind === 'budget'
      ? all
          .filter((each) => makesRoomFor(each, resident))
          .reduce((rest, v) => rest - bytesOn(v, deviceId), held)
      : held;
  if (bytes <= 0) return [];
  const name = resident.modelKey ?? 'unknown model';
  return [{ kind, key: resident.residentId, label: heir ? `${name} → ${heir.modelKey ?? ''}` : name, bytes }];
}

const makesRoomFor = (victim: ResidentItem, heir: ResidentItem): boolean =>
  heir.phase !== 'ready' && heir.decisionId !== undefined && victim.leaving?.decisionId === heir.decisionId;

/** What a resident holds on a device, or will. */
export const bytesOn = ({ memory }: ResidentItem, deviceId: string): number =>
  memory.filter((figure) => figure.deviceId === deviceId).reduce((total, { bytes }) => total + bytes, 0);

import type { DeviceId } from '#domain/ids.js';
import { formatBytes, formatSeconds } from '#domain/units.js';
import type { BytesByDevice } from './charges.js';
import type { EvictionCandidate } from './eviction-candidate.js';
import { evictionSetOf } from './eviction.js';
import type { Shape } from './ladder.js';
import { devicesOf, type Displaced, type Plan, type Verdict } from './plan.js';
import { nameOf } from './room.js';
import type { Snapshot } from './snapshot.js';

export type Admission =
  | {
      readonly kind: 'fits';
      readonly victims: readonly EvictionCandidate[];
      readonly exact: boolean;
      readonly readyInSeconds: number;
      readonly reason: string;
    }
  | Blocked;

/** It would fit if others went. Why, and when, is worked out when it is asked. */
type Blocked = Extract<Verdict, { kind: 'blocked' }>;

/** The device whose tiers a plan can never fit; undefined when it could fit them all. */
export function tooLargeFor(snapshot: Snapshot, plan: Plan): DeviceId | undefined {
  const { devices, bytes } = plan.asked;
  for (let at = 0; at < devices.length; at++) {
    const deviceId = devices[at];
    const limit = deviceId === undefined ? undefined : snapshot.rooms.get(deviceId)?.limitBytes;
    if (limit !== undefined && (bytes[at] ?? 0) > limit) return deviceId;
  }
  return undefined;
}

export function whyTooLarge(snapshot: Snapshot, plan: Plan, deviceId: DeviceId): string {
  const room = snapshot.rooms.get(deviceId);
  const needs = `needs ${formatBytes(plan.asked.get(deviceId) ?? 0)} of ${nameOf(deviceId)}`;
  return `${needs}, and its ${tierName(room?.limitTier ?? 'device')} is ${formatBytes(room?.limitBytes ?? 0)}`;
}

const tierName = (tier: 'device' | 'designation' | 'setting'): string =>
  tier === 'device' ? 'size' : tier === 'designation' ? 'limit set at start' : 'limit set by an admin';

/**
 * Whether a plan that can fit the tiers fits now, and whom it displaces. Nobody is displaced unless the plan is known to
 * fit afterwards.
 * @param withBusy residents with calls on them may be drained too: for an overdue ticket
 */
export function admit(snapshot: Snapshot, plan: Plan, withBusy: boolean): Admission {
  const { asked, need } = plan;
  let deficits: Map<DeviceId, number> | undefined;
  for (const deviceId of devicesOf(plan)) {
    const room = snapshot.rooms.get(deviceId);
    if (room?.roomBytes === undefined) {
      const why = room?.unknown ?? `the worker has no ${nameOf(deviceId)}`;
      const reason = `the room of ${nameOf(deviceId)} is unknown: ${why}`;
      return { kind: 'blocked', plan, shape: plan.shape, reason };
    }
    const deficit = need.unknownOn.has(deviceId)
      ? othersOn(snapshot, deviceId)
      : (asked.get(deviceId) ?? 0) - room.balanceBytes - (snapshot.credit.get(deviceId) ?? 0);
    if (deficit > 0) (deficits ??= new Map<DeviceId, number>()).set(deviceId, deficit);
  }
  if (!deficits) return snapshot.own.length > 0 ? REPLACES : FITS;
  const field = withBusy ? snapshot.withBusy : snapshot.idle;
  const set = evictionSetOf(deficits, field, snapshot.input.settings.evictionOrder);
  if (!set) return new BlockedPlan(snapshot, plan, deficits);
  let readyInSeconds = 0;
  for (const { residentId } of set.victims)
    readyInSeconds = Math.max(readyInSeconds, snapshot.input.activity.get(residentId)?.freeInSeconds ?? 0);
  const { victims, exact } = set;
  return { kind: 'fits', victims, exact, readyInSeconds, reason: fitsReason(snapshot, victims) };
}

const FITS: Admission = { kind: 'fits', victims: [], exact: true, readyInSeconds: 0, reason: 'fits' };
const REPLACES: Admission = { ...FITS, reason: 'fits; replaces its own resident' };

function fitsReason(snapshot: Snapshot, victims: readonly EvictionCandidate[]): string {
  const fits =
    victims.length > 0 ? `fits after evicting ${victims.map((v) => v.modelKey).join(', ')}` : 'fits';
  return snapshot.own.length > 0 ? `${fits}; replaces its own resident` : fits;
}

/** With weights or KV unknown a plan is tried only where nobody else is: all that others hold must go first. */
function othersOn(snapshot: Snapshot, deviceId: DeviceId): number {
  let bytes = 0;
  const own = new Set(snapshot.own.map((r) => r.residentId));
  for (const charge of snapshot.charges.values()) {
    if (!own.has(charge.residentId)) bytes += charge.bytes.get(deviceId) ?? 0;
  }
  return bytes;
}

/** What is worked out of it is kept: a wait is told, compared and explained by the same figures. */
class BlockedPlan implements Blocked {
  readonly kind = 'blocked';
  readonly plan: Plan;
  readonly #snapshot: Snapshot;
  readonly #deficits: ReadonlyMap<DeviceId, number>;
  #free: WhenFree | 'unknown' | undefined;
  #reason: string | undefined;

  constructor(snapshot: Snapshot, plan: Plan, deficits: ReadonlyMap<DeviceId, number>) {
    this.#snapshot = snapshot;
    this.plan = plan;
    this.#deficits = deficits;
  }

  get shape(): Shape {
    return this.plan.shape;
  }

  get freeInSeconds(): number | undefined {
    return this.displaces?.seconds;
  }

  get displaces(): WhenFree | undefined {
    this.#free ??= whenFree(this.#snapshot, this.#deficits) ?? 'unknown';
    return this.#free === 'unknown' ? undefined : this.#free;
  }

  get reason(): string {
    return (this.#reason ??= this.#worded());
  }

  #worded(): string {
    const parts: string[] = [];
    for (const [deviceId, deficit] of this.#deficits) {
      const freeable = this.#snapshot.idle.on(deviceId).bytes;
      if (freeable < deficit) parts.push(lacking(this.#snapshot, this.plan, deviceId, freeable));
    }
    const { freeInSeconds } = this;
    const when = freeInSeconds === undefined ? '' : `; expected in ${formatSeconds(freeInSeconds)}`;
    return parts.join('; ') + when;
  }
}

/** What a plan needs of a device, what is there, and who holds the rest. */
function lacking(snapshot: Snapshot, plan: Plan, deviceId: DeviceId, freeableBytes: number): string {
  const room = snapshot.rooms.get(deviceId);
  const holders = snapshot.blocking.all
    .filter((b) => (b.holds.get(deviceId) ?? 0) > 0)
    .map((b) => `${b.modelKey} holds ${formatBytes(b.holds.get(deviceId) ?? 0)} and ${b.reason}`);
  const foreign = room?.encroachmentBytes
    ? [`other programs use ${formatBytes(room.encroachmentBytes)} of it`]
    : [];
  const need = plan.need.unknownOn.has(deviceId)
    ? `its size is unknown, so it needs ${nameOf(deviceId)} for itself`
    : `needs ${formatBytes(plan.asked.get(deviceId) ?? 0)} of ${nameOf(deviceId)}`;
  const free = `${formatBytes(room?.roomBytes ?? 0)} free`;
  const evictable = freeableBytes > 0 ? `, ${formatBytes(freeableBytes)} more by evicting` : '';
  return (
    `${need}, has ${free}${evictable} of ${formatBytes(room?.limitBytes ?? 0)}` +
    [...holders, ...foreign].map((text) => `; ${text}`).join('')
  );
}

interface WhenFree extends Displaced {
  readonly seconds: number;
}

/** When enough busy residents are expected to be idle, and whom that would displace; undefined when it is not known. */
function whenFree(snapshot: Snapshot, deficits: ReadonlyMap<DeviceId, number>): WhenFree | undefined {
  const devices = [...deficits.keys()];
  const left = [...deficits.values()];
  let count = 0;
  let lossSeconds = 0;
  const helps = (frees: BytesByDevice): boolean => {
    let some = false;
    devices.forEach((deviceId, i) => {
      const bytes = frees.get(deviceId) ?? 0;
      if (bytes <= 0) return;
      left[i] = (left[i] ?? 0) - bytes;
      some = true;
    });
    return some;
  };
  for (const candidate of snapshot.idle.helping(devices)) {
    if (!helps(candidate.frees)) continue;
    count += 1;
    lossSeconds += candidate.lossSeconds;
  }
  for (const busy of snapshot.blocking.coming) {
    if (helps(busy.holds)) {
      count += 1;
      lossSeconds += busy.candidate.lossSeconds;
    }
    if (left.every((bytes) => bytes <= 0)) return { seconds: busy.freeInSeconds, count, lossSeconds };
  }
  return undefined;
}

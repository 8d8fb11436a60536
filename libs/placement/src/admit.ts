import type { DeviceId } from '#domain/ids.js';
import { formatBytes, formatSeconds } from '#domain/units.js';
import { type EvictionCandidate, evictionSet } from './eviction.js';
import { devicesOf, type Plan } from './plan.js';
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
  | { readonly kind: 'blocked'; readonly reason: string; readonly freeInSeconds?: number }
  | { readonly kind: 'never'; readonly reason: string };

/** Why a plan can never fit the worker's tiers; undefined when it could. */
export function neverFits(snapshot: Snapshot, plan: Plan): string | undefined {
  for (const [deviceId, bytes] of plan.asked) {
    const room = snapshot.rooms.get(deviceId);
    if (room?.limitBytes !== undefined && bytes > room.limitBytes)
      return `needs ${formatBytes(bytes)} of ${nameOf(deviceId)}, and its ${tierName(room.limitTier)} is ${formatBytes(room.limitBytes)}`;
  }
  return undefined;
}

const tierName = (tier: 'device' | 'designation' | 'setting'): string =>
  tier === 'device' ? 'size' : tier === 'designation' ? 'limit set at start' : 'limit set by an admin';

/**
 * Whether a plan fits now, and whom it displaces. Nobody is displaced unless the plan is known to fit afterwards.
 * @param withBusy residents with calls on them may be drained too: for an overdue ticket
 */
export function admit(snapshot: Snapshot, plan: Plan, withBusy: boolean): Admission {
  const never = neverFits(snapshot, plan);
  if (never !== undefined) return { kind: 'never', reason: never };
  const deficits = new Map<DeviceId, number>();
  for (const deviceId of devicesOf(plan)) {
    const room = snapshot.rooms.get(deviceId);
    if (room?.roomBytes === undefined) {
      const why = room?.unknown ?? `the worker has no ${nameOf(deviceId)}`;
      return { kind: 'blocked', reason: `the room of ${nameOf(deviceId)} is unknown: ${why}` };
    }
    const deficit = plan.need.unknownOn.has(deviceId)
      ? othersOn(snapshot, deviceId)
      : (plan.asked.get(deviceId) ?? 0) - room.balanceBytes - (snapshot.credit.get(deviceId) ?? 0);
    if (deficit > 0) deficits.set(deviceId, deficit);
  }
  const candidates = withBusy
    ? [...snapshot.candidates, ...snapshot.busy.map((c) => ({ ...c, band: c.band + BUSY_BAND }))]
    : snapshot.candidates;
  const set = evictionSet(deficits, candidates, snapshot.input.settings.evictionOrder);
  if (!set) return blocked(snapshot, plan, deficits);
  const drain = set.victims.map((v) => snapshot.input.activity.get(v.residentId)?.freeInSeconds ?? 0);
  return {
    kind: 'fits',
    victims: set.victims,
    exact: set.exact,
    readyInSeconds: Math.max(0, ...drain),
    reason: fitsReason(snapshot, set.victims),
  };
}

/** Busy residents come after every idle one, whatever their band. */
const BUSY_BAND = 1e6;

function fitsReason(snapshot: Snapshot, victims: readonly EvictionCandidate[]): string {
  const replaced = snapshot.own.length > 0 ? 'replaces its own resident' : '';
  const evicts =
    victims.length > 0 ? `fits after evicting ${victims.map((v) => v.modelKey).join(', ')}` : 'fits';
  return [evicts, replaced].filter((part) => part !== '').join('; ');
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

function blocked(
  snapshot: Snapshot,
  plan: Plan,
  deficits: ReadonlyMap<DeviceId, number>,
): Extract<Admission, { kind: 'blocked' }> {
  const parts: string[] = [];
  for (const [deviceId, deficit] of deficits) {
    const room = snapshot.rooms.get(deviceId);
    const freeable = snapshot.candidates.reduce((sum, c) => sum + (c.frees.get(deviceId) ?? 0), 0);
    if (freeable >= deficit) continue;
    const holders = snapshot.blocking
      .filter((b) => (b.holds.get(deviceId) ?? 0) > 0)
      .map((b) => `${b.modelKey} holds ${formatBytes(b.holds.get(deviceId) ?? 0)} and ${b.reason}`);
    const foreign = room?.encroachmentBytes
      ? [`other programs use ${formatBytes(room.encroachmentBytes)} of it`]
      : [];
    const need = plan.need.unknownOn.has(deviceId)
      ? `its size is unknown, so it needs ${nameOf(deviceId)} for itself`
      : `needs ${formatBytes(plan.asked.get(deviceId) ?? 0)} of ${nameOf(deviceId)}`;
    const free = `${formatBytes(room?.roomBytes ?? 0)} free`;
    const evictable = freeable > 0 ? `, ${formatBytes(freeable)} more by evicting` : '';
    parts.push(
      `${need}, has ${free}${evictable} of ${formatBytes(room?.limitBytes ?? 0)}` +
        [...holders, ...foreign].map((text) => `; ${text}`).join(''),
    );
  }
  const freeInSeconds = whenFree(snapshot, deficits);
  const when = freeInSeconds === undefined ? '' : `; expected in ${formatSeconds(freeInSeconds)}`;
  return {
    kind: 'blocked',
    reason: parts.join('; ') + when,
    ...(freeInSeconds === undefined ? {} : { freeInSeconds }),
  };
}

/** When enough busy residents are expected to be idle; undefined when that is not known. */
function whenFree(snapshot: Snapshot, deficits: ReadonlyMap<DeviceId, number>): number | undefined {
  const left = new Map(deficits);
  const free = (frees: ReadonlyMap<DeviceId, number>): void => {
    for (const [deviceId, bytes] of frees) {
      const before = left.get(deviceId);
      if (before !== undefined) left.set(deviceId, before - bytes);
    }
  };
  for (const candidate of snapshot.candidates) free(candidate.frees);
  const coming = snapshot.blocking
    .filter((b) => b.freeInSeconds !== undefined)
    .sort((a, b) => (a.freeInSeconds ?? 0) - (b.freeInSeconds ?? 0));
  for (const resident of coming) {
    free(resident.holds);
    if ([...left.values()].every((bytes) => bytes <= 0)) return resident.freeInSeconds;
  }
  return undefined;
}

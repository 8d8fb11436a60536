import type { PlacementDecidedData } from '#domain/events/worker-events.js';
import { formatBytes } from '#domain/units.js';
import type { WorkerState } from '#domain/worker/state.js';
import { chargesOf, termsByDevice, unknownDevices } from './charges.js';
import { nameOf, roomOf } from './room.js';
import { alsoInRam, sharingRam } from './shared-memory.js';

/**
 * Whether a decision that was not appended yet, since others wrote first, still holds against the newer state. When
 * it does it is appended again as it is; else the call is decided again.
 */
export const placementPlanStillStands = (data: PlacementDecidedData, worker: WorkerState): boolean =>
  whyPlanFell(data, worker) === undefined;

/** Why a plan no longer stands, in words. */
export function whyPlanFell(data: PlacementDecidedData, worker: WorkerState): string | undefined {
  if (worker.lost || !worker.registered) return 'the worker is gone';
  const victims = new Set(data.victims.map((v) => v.residentId));
  for (const resident of worker.residents.values()) {
    if (resident.modelKey === data.modelKey && !resident.leaving && !victims.has(resident.residentId))
      return `${data.modelKey} was placed meanwhile`;
  }
  for (const { residentId, modelKey } of data.victims) {
    const resident = worker.residents.get(residentId);
    if (!resident) return `${modelKey}, which was to be evicted, is gone`;
    if (resident.leaving) return `${modelKey}, which was to be evicted, is leaving already`;
    if (resident.phase !== 'ready') return `${modelKey}, which was to be evicted, is not ready`;
    if (worker.pins.has(modelKey) && modelKey !== data.modelKey) return `${modelKey} was pinned`;
  }
  return whyNoFit(data, worker);
}

function whyNoFit(data: PlacementDecidedData, worker: WorkerState): string | undefined {
  const charges = chargesOf(worker);
  const unknown = unknownDevices(data.need);
  const others = data.victims.filter((v) => v.modelKey !== data.modelKey);
  const needed = new Set<string>();
  for (const [deviceId, bytes] of alsoInRam(sharingRam(worker.devices), termsByDevice(data.need))) {
    const room = roomOf(worker, deviceId);
    if (room.roomBytes === undefined) return `the room of ${nameOf(deviceId)} is unknown`;
    const freed = (residentId: (typeof data.victims)[number]['residentId']): number =>
      charges.get(residentId)?.bytes.get(deviceId) ?? 0;
    const credit = data.victims.reduce((sum, v) => sum + freed(v.residentId), 0);
    const short = bytes - room.balanceBytes - credit;
    if (short > 0) return `${nameOf(deviceId)} lacks ${formatBytes(short)} by now`;
    for (const victim of others) if (short + freed(victim.residentId) > 0) needed.add(victim.residentId);
    if (unknown.has(deviceId)) for (const victim of others) needed.add(victim.residentId);
  }
  const spared = others.find((v) => !needed.has(v.residentId));
  return spared && `${spared.modelKey} need not be evicted any more`;
}

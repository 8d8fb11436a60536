import type { BerthEvent, Recorded, WorkerEvent } from '#domain/events/index.js';
import { type DeviceId, RAM, workerId } from '#domain/ids.js';
import { formatBytes } from '#domain/units.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import type { OpenDecision, Resident, WorkerState } from '#domain/worker/state.js';
import { type Check, type Place, placeOf, type Report } from './violation.js';

/**
 * Invariant 3: once a decision has been carried out, what stays and what was reserved lies within every device's limit,
 * and what it needs was there by the room that it read. Arithmetic of its own, from the log's figures alone: it shares
 * no code with what decides. Every decision ends.
 */
export class ChargesWithinLimits implements Check {
  readonly #report: Report;
  readonly #workers = new Map<string, WorkerState>();
  readonly #decidedAt = new Map<string, Place>();

  constructor(report: Report) {
    this.#report = report;
  }

  take(recorded: Recorded<BerthEvent>): void {
    if (!recorded.stream.startsWith('worker-')) return;
    const before =
      this.#workers.get(recorded.stream) ?? initialWorker(workerId(recorded.stream.slice('worker-'.length)));
    const worker = evolveWorker(before, recorded as Recorded<WorkerEvent>);
    this.#workers.set(recorded.stream, worker);
    for (const id of before.openDecisions.keys())
      if (!worker.openDecisions.has(id)) this.#decidedAt.delete(id);
    if (recorded.event.type !== 'PlacementDecided') return;
    const decision = worker.openDecisions.get(recorded.event.data.decisionId);
    if (!decision) return;
    this.#decidedAt.set(decision.decisionId, placeOf(recorded));
    for (const [deviceId, needBytes] of bytesByDevice(decision.data.need)) {
      if (needBytes === 0) continue;
      this.#withinLimit(worker, deviceId, recorded);
      this.#withinRoom(decision, deviceId, needBytes, recorded);
    }
  }

  finish(atRest: boolean): void {
    if (!atRest) return;
    for (const worker of this.#workers.values()) {
      for (const { decisionId } of worker.openDecisions.values()) {
        const at = this.#decidedAt.get(decisionId);
        if (at) this.#report(3, at, `Decision ${decisionId} has no end: not ready, failed or closed.`);
      }
    }
  }

  #withinLimit(worker: WorkerState, deviceId: DeviceId, at: Recorded<BerthEvent>): void {
    const limit = limitOf(worker, deviceId);
    if (limit === undefined) {
      this.#report(
        3,
        at,
        `A decision places bytes on ${deviceId}, and the log does not say how much it has.`,
      );
      return;
    }
    let charged = 0;
    const files = new Set<string>();
    const stay = [...worker.residents.values()]
      .filter((r) => !(r.leaving?.by !== undefined && worker.openDecisions.has(r.leaving.by)))
      .sort((a, b) => (a.residentId < b.residentId ? -1 : 1));
    for (const resident of stay) {
      const file = `${resident.modelKey} ${resident.artifact}`;
      charged += chargeOn(resident, deviceId, files.has(file));
      files.add(file);
    }
    if (charged > limit)
      this.#report(
        3,
        at,
        `After this decision ${formatBytes(charged)} (${charged} bytes) are charged on ${deviceId}, and its limit is ${formatBytes(limit)} (${limit} bytes).`,
      );
  }

  #withinRoom(
    { data, decisionId }: OpenDecision,
    deviceId: DeviceId,
    needBytes: number,
    at: Recorded<BerthEvent>,
  ): void {
    const room = data.room.find((r) => r.deviceId === deviceId)?.bytes;
    if (room === undefined) {
      this.#report(3, at, `Decision ${decisionId} places bytes on ${deviceId}, whose room it did not know.`);
      return;
    }
    const freed = data.victims
      .flatMap((v) => v.frees)
      .reduce((sum, f) => sum + (f.deviceId === deviceId ? f.bytes : 0), 0);
    if (needBytes > room + freed)
      this.#report(
        3,
        at,
        `Decision ${decisionId} needs ${needBytes} bytes on ${deviceId}; it read ${room} of room, and its victims free ${freed}.`,
      );
  }
}

function limitOf(worker: WorkerState, deviceId: DeviceId): number | undefined {
  const device = worker.devices.find((d) => d.deviceId === deviceId);
  const has =
    deviceId === RAM ? worker.ramBytes : device && device.totalBytes - (device.driverReservedBytes ?? 0);
  if (has === undefined) return undefined;
  const { designation, setting } = worker.limits;
  return Math.min(has, designation.get(deviceId) ?? Infinity, setting.get(deviceId) ?? Infinity);
}

/**
 * Its plan's need until it is ready, its measurement afterwards. In RAM never less than anonymous memory, nor than its
 * plan; mapped weights of one file are counted once.
 */
function chargeOn(resident: Resident, deviceId: DeviceId, fileCounted: boolean): number {
  const planned = bytesByDevice(resident.need).get(deviceId) ?? 0;
  const measured = resident.phase === 'ready' ? resident.measured : undefined;
  const here = measured?.byDevice.find((d) => d.deviceId === deviceId);
  const sum = here && here.weightsBytes + here.kvBytes + here.computeBytes + here.processBytes;
  if (deviceId !== RAM) return sum ?? planned;
  const anonymous = measured?.hostAnonymousBytes ?? 0;
  const inRam = resident.contract.gpuLayers === 0 && sum !== undefined ? sum : planned;
  if (!fileCounted) return Math.max(anonymous, inRam);
  const mapped =
    resident.contract.gpuLayers === 0 && here ? here.weightsBytes : weightsOn(resident, deviceId);
  return Math.max(anonymous, inRam - mapped, 0);
}

const weightsOn = (resident: Resident, deviceId: DeviceId): number =>
  resident.need.reduce(
    (sum, t) => sum + (t.deviceId === deviceId && t.term === 'weights' ? (t.bytes ?? 0) : 0),
    0,
  );

function bytesByDevice(
  need: readonly { readonly deviceId: DeviceId; readonly bytes?: number }[],
): Map<DeviceId, number> {
  const sums = new Map<DeviceId, number>();
  for (const { deviceId, bytes = 0 } of need) sums.set(deviceId, (sums.get(deviceId) ?? 0) + bytes);
  return sums;
}

import { RAM, type DeviceId } from '#domain/ids.js';
import { type DeviceBytes, sumOf } from '#domain/placement-terms.js';
import { formatBytes, MIB } from '#domain/units.js';
import type { Resident } from '#domain/worker/state.js';
import type { Logger } from '#runtime/logger.js';
import { anonymousBytes, readMemory } from '../hardware/memory.js';

/** What a device's driver said since some moment; a part that it did not say since is absent. */
export interface SaidSince {
  readonly usedBytes?: number;
  /** Pids of all that holds memory there; absent when the driver lists none. */
  readonly pids?: ReadonlySet<number>;
}

/** The accelerators as they are read all the time. */
export interface MemorySource {
  /** An engine and all that descends from it. */
  familyOf(enginePid: number): readonly number[];
  /** What processes hold now, by device; without bytes where the driver does not say how much. */
  heldBy(pids: readonly number[]): readonly { readonly deviceId: DeviceId; readonly bytes?: number }[];
  usedBytes(deviceId: DeviceId): number | undefined;
  /** @param momentMs on the clock of `performance.now` */
  since(deviceId: DeviceId, momentMs: number): SaidSince;
}

type Freed = readonly { readonly deviceId: DeviceId; readonly bytes: number }[];

const DEADLINE_MS = 10_000;
/** The system takes memory back before it tells of a process's end; other programs may have taken it since. */
const RAM_DEADLINE_MS = 1000;
/** Less is not told from what other programs do meanwhile. */
const TOLD_BYTES = 64 * MIB;
const LOOK_MS = 50;
/** Drivers list processes once a second. */
const DRIVER_WORD_MS = 5000;
/** Of what was held, so much must be seen to be free where the driver does not list processes. */
const ENOUGH = 0.9;

/**
 * A driver may give memory back a while after the process that held it is gone. Room is offered once the resident's end
 * is told, so the end is told when the memory was seen to be free.
 */
export class FreedMemory {
  #source: MemorySource | undefined;
  readonly #leaving = new Set<number>();

  constructor(private readonly log: Pick<Logger, 'warn'>) {}

  /** Readings begin after what uses this; until then RAM alone is looked at. */
  attach(source: MemorySource): void {
    this.#source = source;
  }

  /** Its engine is gone, and its memory is still waited for: it is nobody else's. */
  isLeaving(pid: number): boolean {
    return this.#leaving.has(pid);
  }

  /**
   * The same figures with what the process takes of each accelerator beside its buffers: what its driver says that the
   * process holds, less the buffers. Waits for the driver's next word; without one nothing is changed.
   */
  async withProcess(byDevice: readonly DeviceBytes[], enginePid: number): Promise<readonly DeviceBytes[]> {
    const source = this.#source;
    const accelerators = byDevice.filter(({ deviceId }) => deviceId !== RAM);
    if (source === undefined || accelerators.length === 0) return byDevice;
    const sinceMs = performance.now();
    await until(
      () => accelerators.every(({ deviceId }) => source.since(deviceId, sinceMs).pids !== undefined),
      DRIVER_WORD_MS,
    );
    const heldByDevice = new Map(
      source
        .heldBy([enginePid, ...source.familyOf(enginePid)])
        .flatMap(({ deviceId, bytes }) => (bytes === undefined ? [] : [[deviceId, bytes] as const])),
    );
    return byDevice.map((device) => {
      const held = device.deviceId === RAM ? undefined : heldByDevice.get(device.deviceId);
      const buffers = device.weightsBytes + device.kvBytes + device.computeBytes;
      return held === undefined ? device : { ...device, processBytes: Math.max(0, held - buffers) };
    });
  }

  /**
   * Stops an engine and waits until its memory is free, at most 10 s: what the driver still holds then is counted as
   * foreign use from the next reading on.
   * @returns what was freed: as read where that is known, else as it was measured when the resident was loaded.
   */
  async around(resident: Resident, enginePid: number, stop: () => Promise<void>): Promise<Freed> {
    const source = this.#source;
    const family = new Set([enginePid, ...(source?.familyOf(enginePid) ?? [])]);
    const pids = [...family];
    const measured = new Map(heldBytes(resident).map(({ deviceId, bytes }) => [deviceId, bytes]));
    const read = new Map((source?.heldBy(pids) ?? []).map((held) => [held.deviceId, held.bytes]));
    const devices = [...new Set([...read.keys(), ...measured.keys()])].filter((id) => id !== RAM);
    const before = new Map(devices.map((id) => [id, source?.usedBytes(id)]));
    const anonymous = pids.reduce((sum, pid) => sum + (anonymousBytes(pid) ?? 0), 0);
    const availableBytes = readMemory().availableBytes;
    for (const pid of pids) this.#leaving.add(pid);
    try {
      await stop();
      const goneMs = performance.now();
      if (anonymous >= TOLD_BYTES) {
        await until(() => readMemory().availableBytes >= availableBytes + anonymous / 2, RAM_DEADLINE_MS);
      }
      const freed: { deviceId: DeviceId; bytes: number }[] = [];
      const ram = measured.get(RAM);
      if (ram !== undefined) freed.push({ deviceId: RAM, bytes: ram });
      for (const deviceId of devices) {
        const used = before.get(deviceId);
        const held = read.get(deviceId) ?? measured.get(deviceId) ?? 0;
        const fallen = () => {
          const now = source?.since(deviceId, goneMs).usedBytes;
          return used === undefined || now === undefined ? undefined : Math.max(0, used - now);
        };
        const free = await until(
          () => {
            const { pids: listed } = source?.since(deviceId, goneMs) ?? {};
            // A list without them is an answer only where they were in one before.
            if (listed !== undefined && read.has(deviceId)) return !pids.some((pid) => listed.has(pid));
            return (fallen() ?? 0) >= held * ENOUGH;
          },
          DEADLINE_MS - (performance.now() - goneMs),
        );
        if (!free) {
          this.log.warn(
            { residentId: resident.residentId, deviceId },
            `its engine is gone, and of ${formatBytes(held)} ${formatBytes(fallen() ?? 0)} were seen to be free after ${DEADLINE_MS / 1000} s; the rest counts as foreign use`,
          );
        }
        freed.push({ deviceId, bytes: free ? (read.get(deviceId) ?? fallen() ?? held) : (fallen() ?? 0) });
      }
      return freed;
    } finally {
      for (const pid of pids) this.#leaving.delete(pid);
    }
  }
}

/** What a resident was measured to hold: what its end gives back. */
export const heldBytes = (resident: Resident): Freed =>
  (resident.measured?.byDevice ?? []).map((d) => ({ deviceId: d.deviceId, bytes: sumOf(d) }));

async function until(holds: () => boolean, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs;
  while (!holds()) {
    if (performance.now() >= deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  return true;
}

import { MOST_FOREIGN_PROCESSES } from '#domain/events/limits.js';
import type { DeviceReading } from '#domain/events/readings-events.js';
import type { WorkerEventData } from '#domain/events/worker-events.js';
import { RAM, type DeviceId, type ResidentId } from '#domain/ids.js';
import { sumOf } from '#domain/placement-terms.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import type { Logger } from '#runtime/logger.js';
import { busyCores, type CpuTicks, sumOfTicks } from '../hardware/busy.js';
import { BusyCores, type OurWork, readTicksByCpu } from '../hardware/busy-cores.js';
import { stepForeignUse } from '../hardware/foreign-use.js';
import type { GpuReading } from '../hardware/gpus/gpu-reading.js';
import { GPU_EVERY_MS, GpuWatch } from '../hardware/gpus/watch-gpus.js';
import { anonymousBytes, readMemory } from '../hardware/memory.js';
import { listProcesses, OwnedProcesses, type ProcessEntry } from '../hardware/processes.js';
import type { AgentLine } from '../line/line.js';
import type { ReadingsLog } from '../line/readings-log.js';
import type { RunningEngines } from './engines.js';
import type { FactWriter } from './facts.js';
import type { FreedMemory } from './freed.js';

const EVERY_MS = 1000;
/** A driver that told nothing is believed again when it has told something for so long: one that flaps writes little. */
const BELIEVED_AFTER_MS = 5000;
/** Cores that others work on are told at most so often, and on machines of fewer cores than this no core is claimed. */
const BUSY_CORES_EVERY_MS = 10_000;
const LEAST_CORES = 3;

export interface ReadingsOptions {
  readonly state: () => WorkerState;
  readonly engines: RunningEngines;
  readonly line: AgentLine;
  readonly facts: FactWriter;
  readonly log: Logger;
  /** Accelerators as they were found at the start. */
  readonly gpus: readonly GpuReading[];
  /** Where readings are kept for an hour. */
  readonly kept: ReadingsLog;
  /** Waits for memory of engines that are gone, and is told what the drivers say. */
  readonly freed?: FreedMemory;
}

/** A device as the line carries it: a figure that is not known is 0 and said to be unknown. */
interface LineReading {
  readonly deviceId: DeviceId;
  readonly totalBytes: number;
  readonly usedBytes: number;
  readonly foreignBytes: number;
  readonly known: boolean;
}

/**
 * Reads the accelerators four times a second and the rest once, and sends each reading over the line. Only foreign use
 * that crosses a step becomes an event: it is what a decision counts with.
 */
export function startReadings(o: ReadingsOptions): { first: Promise<void>; stop(): Promise<void> } {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const watch = o.gpus.length > 0 ? new GpuWatch(o.gpus) : undefined;
  const owned = new OwnedProcesses();
  let owners: ReadonlyMap<number, number> = new Map();
  let foreign: readonly ProcessEntry[] = [];
  let before: { readonly ticks: CpuTicks; readonly ours: ReadonlyMap<number, number> } | undefined;
  let busy: ReturnType<typeof busyCores>;
  let host: LineReading | undefined;
  /** Since when each accelerator's use has been told without a gap. */
  const toldSinceMs = new Map<DeviceId, number>();
  const busyCpus = new BusyCores();
  let busyNow: readonly number[] | undefined;
  let busyToldMs = -Infinity;

  const ownerOf = (pid: number): ResidentId | 'leaving' | undefined => {
    const engine = owners.get(pid);
    const resident = o.engines.all().find((running) => running.pid === engine)?.residentId;
    return resident ?? (o.freed?.isLeaving(pid) === true ? 'leaving' : undefined);
  };

  const readGpus = (): readonly { readonly line: LineReading; readonly gpu: GpuReading }[] =>
    (watch?.latest() ?? []).map((gpu) => {
      const { deviceId, totalBytes } = gpu.device;
      const { usedBytes } = gpu;
      // What an engine took since its driver listed processes is nobody else's.
      const listedBytes = usedBytes === undefined ? 0 : (gpu.listedBytes ?? usedBytes);
      const ours = usedBytes === undefined ? 0 : heldOn(gpu, ownerOf, o.state().residents);
      const line = {
        deviceId,
        totalBytes,
        usedBytes: usedBytes ?? 0,
        foreignBytes: Math.max(0, listedBytes - ours),
        known: usedBytes !== undefined,
      };
      return { line, gpu };
    });

  const readHost = (): LineReading => {
    const processes = listProcesses();
    owners = owned.update(new Set(o.engines.all().map(({ pid }) => pid)), processes);
    foreign = processes.filter(({ pid }) => !owners.has(pid));
    const memory = readMemory();
    // Where there is no /proc to list, an engine counts with what was measured when it was loaded.
    const told = [...owners.keys()].map((pid) => anonymousBytes(pid)).filter((bytes) => bytes !== undefined);
    const untold = o.engines.all().filter(({ pid }) => !owners.has(pid));
    const ours =
      told.reduce((sum, bytes) => sum + bytes, 0) +
      untold.reduce((sum, { residentId }) => sum + measuredInRam(o.state(), residentId), 0);
    readBusy(processes);
    return {
      deviceId: RAM,
      totalBytes: memory.totalBytes,
      usedBytes: memory.usedBytes,
      foreignBytes: Math.max(0, memory.usedBytes - ours),
      known: true,
    };
  };

  const claimsCores = (): boolean => {
    const { cpuTopology, physicalCores } = o.state();
    return cpuTopology !== undefined && physicalCores >= LEAST_CORES;
  };

  const readBusy = (processes: readonly ProcessEntry[]): void => {
    const byCpu = readTicksByCpu();
    const ticks = sumOfTicks(byCpu);
    if (ticks === undefined) return;
    const ours = new Map(processes.filter(({ pid }) => owners.has(pid)).map((p) => [p.pid, p.cpuTicks]));
    const worked = [...ours].reduce((sum, [pid, now]) => sum + now - (before?.ours.get(pid) ?? now), 0);
    busy = before === undefined ? undefined : busyCores(before.ticks, ticks, worked);
    if (claimsCores()) busyNow = busyCpus.read(byCpu, ourWork(ours));
    before = { ticks, ours };
  };

  const ourWork = (ours: ReadonlyMap<number, number>): readonly OurWork[] =>
    [...ours].map(([pid, now]) => {
      const owner = ownerOf(pid);
      const resident =
        owner === undefined || owner === 'leaving' ? undefined : o.state().residents.get(owner);
      const cpus = resident?.cores ?? resident?.contract.cores;
      return { ticks: now - (before?.ours.get(pid) ?? now), ...(cpus === undefined ? {} : { cpus }) };
    });

  const chargeCores = async (): Promise<void> => {
    const { busyCpus: told = [], cpuTopology = [] } = o.state();
    if (busyNow === undefined || !claimsCores()) return;
    const cpus = busyNow.filter((cpu) => cpuTopology.some((t) => t.cpu === cpu));
    if (cpus.join() === told.join() || performance.now() - busyToldMs < BUSY_CORES_EVERY_MS) return;
    busyToldMs = performance.now();
    await o.facts.ofItself({ type: 'BusyCoresChanged', data: { cpus } });
  };

  const send = (devices: readonly LineReading[], at: string): void => {
    o.line.broadcast({ readings: { at, devices: [...devices], cpuBusyCores: busy?.foreign ?? 0 } });
  };

  const read = async (): Promise<void> => {
    const read = readHost();
    host = read;
    const gpus = readGpus();
    const at = new Date().toISOString();
    await charge(read.deviceId, read.foreignBytes);
    await chargeCores();
    // What others use of memory that is the host's is charged to the host.
    for (const { line, gpu } of gpus) {
      if (gpu.device.sharesRam !== true) await chargeCard(line);
    }
    send([read, ...gpus.map(({ line }) => line)], at);
    o.kept.add({
      takenAt: at,
      devices: [keptOf(read), ...gpus.map(({ line, gpu }) => keptOf(line, gpu))],
      ...(busy === undefined
        ? {}
        : { cpuPercent: round(busy.percent), foreignBusyCores: round(busy.foreign) }),
      swapUsedBytes: readMemory().swapUsedBytes,
    });
  };

  /** A use that is not told any more is no use that was told: it is unknown to every decision until it is told again. */
  const chargeCard = async ({ deviceId, known, foreignBytes }: LineReading): Promise<void> => {
    const { foreign: charged, silent } = o.state();
    if (!known) {
      toldSinceMs.delete(deviceId);
      if (charged.has(deviceId)) await o.facts.ofItself(foreignUse({ deviceId, processes: [] }));
      return;
    }
    const sinceMs = toldSinceMs.get(deviceId) ?? performance.now();
    toldSinceMs.set(deviceId, sinceMs);
    if (silent.has(deviceId) && performance.now() - sinceMs < BELIEVED_AFTER_MS) return;
    await charge(deviceId, foreignBytes);
  };

  const charge = async (deviceId: DeviceId, bytes: number): Promise<void> => {
    const charged = o.state().foreign.get(deviceId);
    const step = stepForeignUse(charged, bytes);
    if (step === charged) return;
    const processes = deviceId === RAM ? largestOf(foreign) : [];
    await o.facts.ofItself(foreignUse({ deviceId, bytes: step, processes }));
  };

  o.freed?.attach({
    familyOf: (enginePid) => [...owners].flatMap(([pid, engine]) => (engine === enginePid ? [pid] : [])),
    heldBy: (pids) =>
      (watch?.latest() ?? []).flatMap(({ device: { deviceId }, processes }) => {
        const ours = processes?.filter(({ pid }) => pids.includes(pid)) ?? [];
        if (ours.length === 0) return [];
        const told = ours.every(({ bytes }) => bytes !== undefined);
        return [{ deviceId, ...(told ? { bytes: ours.reduce((sum, p) => sum + (p.bytes ?? 0), 0) } : {}) }];
      }),
    usedBytes: (deviceId) => watch?.latest().find(({ device }) => device.deviceId === deviceId)?.usedBytes,
    since: (deviceId, momentMs) => watch?.since(deviceId, momentMs) ?? {},
  });

  const loop = async (): Promise<void> => {
    try {
      await read();
    } catch (error) {
      if (!stopped) o.log.warn({ reason: String(error) }, 'the devices could not be read');
    }
    if (stopped) return;
    timer = setTimeout(() => {
      current = loop();
    }, EVERY_MS);
  };
  let current = loop();
  // Between two full readings the line carries the accelerators with the host as it was read last.
  const fast =
    watch &&
    setInterval(() => {
      const gpus = readGpus().map(({ line }) => line);
      send(host === undefined ? gpus : [host, ...gpus], new Date().toISOString());
    }, GPU_EVERY_MS).unref();
  return {
    first: current,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      clearInterval(fast);
      watch?.stop();
      await current;
    },
  };
}

/** Of the host's memory, that of accelerators included which have none of their own. */
export function measuredInRam(state: Pick<WorkerState, 'residents' | 'devices'>, id: ResidentId): number {
  const measured = state.residents.get(id)?.measured;
  if (measured === undefined) return 0;
  const sharing = new Set(state.devices.filter((d) => d.sharesRam === true).map((d) => d.deviceId));
  return measured.byDevice
    .filter(({ deviceId }) => sharing.has(deviceId))
    .reduce((sum, d) => sum + sumOf(d), measured.hostAnonymousBytes);
}

/**
 * What our processes hold on a device, as the driver says; what residents were measured to hold where it does not. Of a
 * resident no more than it is charged with, once it is known what its process takes beside its buffers: what it takes
 * beyond that has no other place to be counted.
 * @param ownerOf the resident that a process belongs to; `leaving` when that has ended and its memory is still awaited
 */
export function heldOn(
  { device: { deviceId }, processes }: GpuReading,
  ownerOf: (pid: number) => ResidentId | 'leaving' | undefined,
  residents: ReadonlyMap<ResidentId, Pick<Resident, 'measured'>>,
): number {
  const charged = (id: ResidentId): number | undefined => {
    const on = residents.get(id)?.measured?.byDevice.find((d) => d.deviceId === deviceId);
    return on && sumOf(on);
  };
  const measured = (id: ResidentId): boolean =>
    residents.get(id)?.measured?.byDevice.some((d) => d.deviceId === deviceId && d.processBytes > 0) === true;
  const byOwner = new Map<ResidentId | 'leaving', number>();
  let told = true;
  for (const { pid, bytes } of processes ?? []) {
    const owner = ownerOf(pid);
    if (owner === undefined) continue;
    told = told && bytes !== undefined;
    byOwner.set(owner, (byOwner.get(owner) ?? 0) + (bytes ?? 0));
  }
  if (byOwner.size === 0 || !told) {
    return [...residents.keys()].reduce((sum, id) => sum + (charged(id) ?? 0), 0);
  }
  return [...byOwner].reduce(
    (sum, [owner, bytes]) =>
      sum + (owner !== 'leaving' && measured(owner) ? Math.min(bytes, charged(owner) ?? bytes) : bytes),
    0,
  );
}

function keptOf(line: LineReading, gpu?: GpuReading): DeviceReading {
  const { deviceId, totalBytes, usedBytes, foreignBytes, known } = line;
  return {
    deviceId,
    totalBytes,
    ...(known ? { usedBytes, foreignBytes } : {}),
    ...(gpu?.utilizationPercent === undefined ? {} : { utilizationPercent: gpu.utilizationPercent }),
    ...(gpu?.temperatureCelsius === undefined ? {} : { temperatureCelsius: gpu.temperatureCelsius }),
    ...(gpu?.powerWatts === undefined ? {} : { powerWatts: gpu.powerWatts }),
  };
}

const foreignUse = (data: WorkerEventData<'ForeignUseChanged'>) =>
  ({ type: 'ForeignUseChanged', data }) as const;

/** The foreign processes that hold most, by executable alone. */
function largestOf(processes: readonly ProcessEntry[]): WorkerEventData<'ForeignUseChanged'>['processes'] {
  return processes
    .map(({ pid, name }) => ({ pid, name, bytes: anonymousBytes(pid) ?? 0 }))
    .filter(({ bytes }) => bytes > 0)
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, MOST_FOREIGN_PROCESSES);
}

const round = (value: number): number => Math.round(value * 100) / 100;

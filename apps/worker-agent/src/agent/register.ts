import { hostname, platform, release } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { EngineOnWorker, WorkerEvent, WorkerEventData } from '#domain/events/worker-events.js';
import { DISK, RAM, type WorkerId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { ProcessConfig } from '#runtime/config.js';
import { newId } from '#runtime/ids.js';
import { bootId } from '#runtime/process-info.js';
import type { Logger } from '#runtime/logger.js';
import { type CpuReading, readCpu } from '../hardware/cpu.js';
import { readMemory } from '../hardware/memory.js';
import { readDrives } from '../hardware/drives.js';
import type { GpuReading } from '../hardware/gpus/gpu-reading.js';
import { readGpus } from '../hardware/gpus/read-gpus.js';
import { readText } from '../hardware/read-text.js';
import type { FactWriter } from './facts.js';

/**
 * Says what the machine is, as far as the log does not say it already. Nothing that did not change is written.
 * @param roots folders of models, whose drives are told; Berth's own comes first.
 * @param elsewhere the processors of a machine that is no Linux.
 * @returns the accelerators as they were found.
 */
export async function register(
  state: WorkerState,
  workerId: WorkerId,
  config: ProcessConfig,
  engines: readonly EngineOnWorker[],
  facts: FactWriter,
  log: Logger,
  roots: readonly string[] = [config.models],
  elsewhere?: CpuReading,
): Promise<readonly GpuReading[]> {
  const id = newId();
  const write = (event: WorkerEvent) => facts.worker(newId(), event, { correlationId: id, causationId: id });

  const registered = registrationOf(engines);
  const known = { name: state.name, host: state.host, dataAddress: state.dataAddress, bootId: state.bootId };
  const told = {
    name: registered.name,
    host: registered.host,
    dataAddress: registered.dataAddress,
    bootId: registered.bootId,
  };
  if (!state.registered || !isDeepStrictEqual(known, told) || !isDeepStrictEqual(state.engines, engines)) {
    await write({ type: 'WorkerRegistered', data: registered });
  }

  const memory = readMemory();
  const cpu = elsewhere ?? readCpu();
  const gpus = await readGpus();
  if (gpus.silent.length > 0) {
    log.warn({ tools: gpus.silent }, 'these did not answer within 5 s: what they know of is not offered');
  }
  const devices = gpus.readings.map((gpu) => gpu.device);
  const drives = await readDrives(roots, readText('/proc/self/mountinfo'));
  const capacity: WorkerEventData<'CapacityMeasured'> = {
    devices,
    ramBytes: memory.totalBytes,
    swapBytes: memory.swapBytes,
    physicalCores: cpu.physicalCores,
    cpuTopology: cpu.topology,
    ...(cpu.lastCacheBytes === undefined ? {} : { lastCacheBytes: cpu.lastCacheBytes }),
    drives,
  };
  if (hasChanged(state, capacity)) await write({ type: 'CapacityMeasured', data: capacity });

  const designations = new Map<string, number | undefined>([
    [RAM, config.ramMaxBytes],
    ['cores', config.cpuMax],
    [DISK, config.diskMaxBytes],
    ...devices.map((d) => [d.deviceId, config.vramMaxBytes] as const),
  ]);
  for (const [resource, value] of designations) {
    if (state.limits.designation.get(resource) === value) continue;
    await write({
      type: 'LimitSet',
      data: { resource, tier: 'designation', value: value ?? null, by: `agent:${workerId}` },
    });
  }
  return gpus.readings;
}

/** Who this worker is, and with which engines. */
export const registrationOf = (engines: readonly EngineOnWorker[]): WorkerEventData<'WorkerRegistered'> => ({
  name: hostname(),
  host: hostname(),
  agentVersion: '0.1.0',
  os: `${platform()} ${release()}`,
  engines,
  dataAddress: '127.0.0.1',
  bootId: bootId(),
});

/** What is free on a drive wobbles, and is no capacity. */
function hasChanged(state: WorkerState, now: WorkerEventData<'CapacityMeasured'>): boolean {
  const sizes = (drives: WorkerState['drives']) =>
    drives?.map(({ mount, totalBytes }) => ({ mount, totalBytes }));
  const { drives, ...rest } = now;
  const known: Record<string, unknown> = { ...state };
  return (
    !isDeepStrictEqual(sizes(drives), sizes(state.drives)) ||
    Object.entries(rest).some(([key, value]) => !isDeepStrictEqual(value, known[key]))
  );
}

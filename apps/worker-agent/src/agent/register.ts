import { hostname, platform, release } from 'node:os';
import { statfs } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { EngineOnWorker, WorkerEvent, WorkerEventData } from '#domain/events/worker-events.js';
import { RAM, type WorkerId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { ProcessConfig } from '#runtime/config.js';
import { newId } from '#runtime/ids.js';
import { bootId } from '#runtime/process-info.js';
import type { Logger } from '#runtime/logger.js';
import { readCpu } from '../hardware/cpu.js';
import { readMemory } from '../hardware/memory.js';
import { readNvidia } from '../hardware/nvidia.js';
import type { FactWriter } from './facts.js';

/** Says what the machine is, as far as the log does not say it already. Nothing that did not change is written. */
export async function register(
  state: WorkerState,
  workerId: WorkerId,
  config: ProcessConfig,
  engines: readonly EngineOnWorker[],
  facts: FactWriter,
  log: Logger,
): Promise<void> {
  const id = newId();
  const write = (event: WorkerEvent) => facts.worker(newId(), event, { correlationId: id, causationId: id });

  const registered: WorkerEventData<'WorkerRegistered'> = {
    name: hostname(),
    host: hostname(),
    agentVersion: '0.1.0',
    os: `${platform()} ${release()}`,
    engines,
    dataAddress: '127.0.0.1',
    bootId: bootId(),
  };
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
  const cpu = readCpu();
  const gpus = await readNvidia();
  if (gpus === undefined) log.warn('nvidia-smi did not answer within 5 s; no accelerator is offered');
  const devices = (gpus ?? []).map((gpu) => gpu.device);
  if (
    state.ramBytes !== memory.totalBytes ||
    state.physicalCores !== cpu.physicalCores ||
    !isDeepStrictEqual(state.devices, devices)
  ) {
    await write({
      type: 'CapacityMeasured',
      data: {
        devices,
        ramBytes: memory.totalBytes,
        swapBytes: memory.swapBytes,
        physicalCores: cpu.physicalCores,
        cpuTopology: cpu.topology,
        drives: await readDrive(config.models),
      },
    });
  }

  const designations = new Map<string, number | undefined>([
    [RAM, config.ramMaxBytes],
    ['cores', config.cpuMax],
    ...devices.map((d) => [d.deviceId, config.vramMaxBytes] as const),
  ]);
  for (const [resource, value] of designations) {
    if (state.limits.designation.get(resource) === value) continue;
    await write({
      type: 'LimitSet',
      data: { resource, tier: 'designation', value: value ?? null, by: `agent:${workerId}` },
    });
  }
}

async function readDrive(mount: string): Promise<WorkerEventData<'CapacityMeasured'>['drives']> {
  const fs = await statfs(mount).catch(() => undefined);
  return fs ? [{ mount, totalBytes: fs.blocks * fs.bsize, freeBytes: fs.bavail * fs.bsize }] : [];
}

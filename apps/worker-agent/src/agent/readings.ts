import { RAM, type DeviceId } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import { newId } from '#runtime/ids.js';
import type { Logger } from '#runtime/logger.js';
import { stepForeignUse } from '../hardware/foreign-use.js';
import { anonymousBytes, readMemory } from '../hardware/memory.js';
import { readNvidia } from '../hardware/nvidia.js';
import type { AgentLine } from '../line/line.js';
import type { RunningEngines } from './engines.js';
import type { FactWriter } from './facts.js';

const EVERY_MS = 1000;

export interface ReadingsOptions {
  readonly state: () => WorkerState;
  readonly engines: RunningEngines;
  readonly line: AgentLine;
  readonly facts: FactWriter;
  readonly log: Logger;
}

/**
 * Reads the devices once a second and sends the reading over the line. Only foreign use that crosses a step becomes an
 * event: it is what a decision counts with.
 */
export function startReadings(o: ReadingsOptions): { first: Promise<void>; stop(): Promise<void> } {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const hasGpus = () => o.state().devices.length > 0;

  const read = async (): Promise<void> => {
    const state = o.state();
    const memory = readMemory();
    const ours = o.engines.all().reduce((sum, engine) => sum + (anonymousBytes(engine.pid) ?? 0), 0);
    const devices = [
      {
        deviceId: RAM,
        totalBytes: memory.totalBytes,
        usedBytes: memory.usedBytes,
        foreignBytes: Math.max(0, memory.usedBytes - ours),
        known: true,
      },
    ];
    if (hasGpus()) {
      const gpus = await readNvidia();
      for (const device of state.devices) {
        const usedBytes = gpus?.find((g) => g.device.deviceId === device.deviceId)?.usedBytes;
        const held = [...state.residents.values()]
          .flatMap((r) => r.measured?.byDevice ?? [])
          .filter((d) => d.deviceId === device.deviceId)
          .reduce((sum, d) => sum + d.weightsBytes + d.kvBytes + d.computeBytes + d.processBytes, 0);
        devices.push({
          deviceId: device.deviceId,
          totalBytes: device.totalBytes,
          usedBytes: usedBytes ?? 0,
          foreignBytes: Math.max(0, (usedBytes ?? 0) - held),
          known: usedBytes !== undefined,
        });
      }
    }
    for (const device of devices) {
      if (device.known)
        await charge(state.foreign.get(device.deviceId), device.deviceId, device.foreignBytes);
    }
    o.line.broadcast({ readings: { at: new Date().toISOString(), devices, cpuBusyCores: 0 } });
  };

  const charge = async (charged: number | undefined, deviceId: DeviceId, bytes: number): Promise<void> => {
    const step = stepForeignUse(charged, bytes);
    if (step === charged) return;
    const id = newId();
    await o.facts.worker(
      id,
      { type: 'ForeignUseChanged', data: { deviceId, bytes: step, processes: [] } },
      { correlationId: id, causationId: id },
    );
  };

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
  return {
    first: current,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await current;
    },
  };
}

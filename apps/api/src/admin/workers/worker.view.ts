import { type DeviceFigures, present } from '../views/present.js';
import type { DeviceRow, HeldRow, WorkerRow, WorkersAndDevices } from './workers.repository.js';

/** As the views keep a worker's limits: by resource, of each of the two that set them. */
export interface Limits {
  readonly designation: Readonly<Record<string, number>>;
  readonly setting: Readonly<Record<string, number>>;
}

/** The lower of what the start and a setting allow; undefined when neither limits it. */
function limitOf(limits: Limits, resource: string): number | undefined {
  const set = [limits.designation[resource], limits.setting[resource]].filter((value) => value !== undefined);
  return set.length === 0 ? undefined : Math.min(...set);
}

function deviceView(device: DeviceRow, limits: Limits, held: readonly HeldRow[]) {
  const residentBytes = held
    .flatMap((row) => (row.measured_memory ?? row.predicted_memory ?? []) as DeviceFigures)
    .filter((figure) => figure.deviceId === device.device_id)
    .reduce((sum, figure) => sum + figure.bytes, 0);
  return present({
    deviceId: device.device_id,
    kind: device.kind,
    name: device.name,
    uuid: device.uuid,
    totalBytes: device.total_bytes,
    driverReservedBytes: device.driver_reserved_bytes,
    computeCapability: device.compute_capability,
    limitBytes: limitOf(limits, device.device_id),
    residentBytes,
    foreignBytes: device.foreign_bytes,
    foreignProcesses: device.foreign_processes,
  });
}

function workerView(worker: WorkerRow, devices: readonly DeviceRow[], held: readonly HeldRow[]) {
  const limits = worker.limits as Limits;
  return present({
    workerId: worker.worker_id,
    name: worker.name,
    host: worker.host,
    os: worker.os,
    agentVersion: worker.agent_version,
    engines: worker.engines,
    lost: worker.lost,
    lastSeenAt: worker.last_seen_at,
    registeredAt: worker.registered_at,
    ramBytes: worker.ram_bytes,
    swapBytes: worker.swap_bytes,
    physicalCores: worker.physical_cores,
    coresLimit: limitOf(limits, 'cores'),
    diskLimitBytes: limitOf(limits, 'disk'),
    memoryBandwidth: worker.memory_bandwidth,
    drives: worker.drives,
    limits,
    pins: worker.pins,
    devices: devices
      .filter((device) => device.worker_id === worker.worker_id)
      .map((device) =>
        deviceView(
          device,
          limits,
          held.filter((row) => row.worker_id === worker.worker_id),
        ),
      ),
  });
}

export type WorkerView = ReturnType<typeof workerView>;

export const workerViewer =
  ({ devices, held }: WorkersAndDevices) =>
  (worker: WorkerRow): WorkerView =>
    workerView(worker, devices, held);

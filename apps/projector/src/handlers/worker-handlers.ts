import type { BerthEvent, DeviceOnWorker, Recorded } from '#domain/events/index.js';
import { RAM } from '#domain/ids.js';
import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import { type Handler, type Handlers, positionOf, streamId } from './handler.js';

interface Limits {
  readonly designation: Readonly<Record<string, number>>;
  readonly setting: Readonly<Record<string, number>>;
}

const newWorker = (recorded: Recorded<BerthEvent>): Row<'workers'> => ({
  worker_id: streamId(recorded),
  name: null,
  host: null,
  data_address: null,
  agent_version: null,
  os: null,
  boot_id: null,
  engines: [],
  ram_bytes: null,
  swap_bytes: null,
  physical_cores: null,
  memory_bandwidth: null,
  drives: [],
  limits: { designation: {}, setting: {} } satisfies Limits,
  pins: [],
  device_ids: [],
  lost: false,
  last_seen_at: null,
  registered_at: null,
  changed_at: recorded.metadata.at,
  position: positionOf(recorded),
});

const newDevice = (workerId: string, deviceId: string, at: string): Row<'devices'> => ({
  worker_id: workerId,
  device_id: deviceId,
  ordinal: 0,
  kind: null,
  name: null,
  uuid: null,
  total_bytes: null,
  driver_reserved_bytes: null,
  compute_capability: null,
  foreign_bytes: null,
  foreign_processes: null,
  present: true,
  changed_at: at,
});

function change(
  views: Views,
  recorded: Recorded<BerthEvent>,
  to: (row: Row<'workers'>) => Partial<Row<'workers'>>,
): void {
  const row = views.workers.get(streamId(recorded)) ?? newWorker(recorded);
  views.workers.put({ ...row, ...to(row), changed_at: recorded.metadata.at });
}

const touchesWorker = (views: Views, recorded: Recorded<BerthEvent>): void =>
  views.workers.want(streamId(recorded));

const registered: Handler<'WorkerRegistered'> = {
  touches: touchesWorker,
  apply: (views, recorded) => {
    const { name, host, dataAddress, agentVersion, os, bootId, engines } = recorded.event.data;
    change(views, recorded, () => ({
      name,
      host,
      data_address: dataAddress,
      agent_version: agentVersion,
      os,
      boot_id: bootId,
      engines,
      lost: false,
      registered_at: recorded.metadata.at,
    }));
  },
};

const capacity: Handler<'CapacityMeasured'> = {
  touches: (views, recorded) => {
    touchesWorker(views, recorded);
    views.devices.want(streamId(recorded), RAM);
    for (const device of recorded.event.data.devices) views.devices.want(streamId(recorded), device.deviceId);
  },
  apply: (views, recorded) => {
    const workerId = streamId(recorded);
    const at = recorded.metadata.at;
    const { devices, ramBytes, swapBytes, physicalCores, memoryBandwidth, drives } = recorded.event.data;
    const ram: DeviceOnWorker = { deviceId: RAM, kind: 'cpu', name: 'RAM', totalBytes: ramBytes };
    const all = devices.some((device) => device.deviceId === RAM) ? devices : [ram, ...devices];
    const before = views.workers.get(workerId)?.device_ids ?? [];
    const ids: readonly string[] = all.map((device) => device.deviceId);
    change(views, recorded, () => ({
      ram_bytes: ramBytes,
      swap_bytes: swapBytes,
      physical_cores: physicalCores,
      memory_bandwidth: memoryBandwidth ?? null,
      drives,
      device_ids: [...new Set([...ids, ...before])],
    }));
    for (const gone of before.filter((id) => !ids.includes(id))) {
      views.devices.patch([workerId, gone], { present: false, changed_at: at });
    }
    all.forEach((device, ordinal) => {
      const row = views.devices.get(workerId, device.deviceId) ?? newDevice(workerId, device.deviceId, at);
      views.devices.put({
        ...row,
        ordinal,
        kind: device.kind,
        name: device.name,
        uuid: device.uuid ?? null,
        total_bytes: device.totalBytes,
        driver_reserved_bytes: device.driverReservedBytes ?? null,
        compute_capability: device.computeCapability ?? null,
        present: true,
        changed_at: at,
      });
    });
  },
};

const limit: Handler<'LimitSet'> = {
  touches: touchesWorker,
  apply: (views, recorded) => {
    const { resource, tier, value } = recorded.event.data;
    change(views, recorded, (row) => {
      const limits = row.limits as Limits;
      const { [resource]: _before, ...others } = limits[tier];
      return { limits: { ...limits, [tier]: value === null ? others : { ...others, [resource]: value } } };
    });
  },
};

const foreignUse: Handler<'ForeignUseChanged'> = {
  touches: (views, recorded) => views.devices.want(streamId(recorded), recorded.event.data.deviceId),
  apply: (views, recorded) => {
    const { deviceId, bytes, processes } = recorded.event.data;
    const at = recorded.metadata.at;
    const row =
      views.devices.get(streamId(recorded), deviceId) ?? newDevice(streamId(recorded), deviceId, at);
    views.devices.put({ ...row, foreign_bytes: bytes ?? null, foreign_processes: processes, changed_at: at });
  },
};

const lost: Handler<'WorkerLost'> = {
  touches: touchesWorker,
  apply: (views, recorded) =>
    change(views, recorded, () => ({ lost: true, last_seen_at: recorded.event.data.lastSeenAt })),
};

const returned: Handler<'WorkerReturned'> = {
  touches: touchesWorker,
  apply: (views, recorded) =>
    change(views, recorded, () => ({ lost: false, boot_id: recorded.event.data.bootId })),
};

const pin: Handler<'PinSet'> = {
  touches: touchesWorker,
  apply: (views, recorded) => {
    const { modelKey, pinned } = recorded.event.data;
    change(views, recorded, (row) => {
      const others = row.pins.filter((key) => key !== modelKey);
      return { pins: pinned ? [...others, modelKey].sort() : others };
    });
  },
};

export const workerHandlers = {
  WorkerRegistered: registered,
  CapacityMeasured: capacity,
  LimitSet: limit,
  ForeignUseChanged: foreignUse,
  WorkerLost: lost,
  WorkerReturned: returned,
  PinSet: pin,
} satisfies Handlers;

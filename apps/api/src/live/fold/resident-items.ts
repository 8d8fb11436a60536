import type { Recorded, WorkerEvent } from '#domain/events/index.js';
import { RAM, type ResidentId } from '#domain/ids.js';
import { sumOf } from '#domain/placement-terms.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import type { DeviceItem, ResidentItem } from '#domain/wire/index.js';
import { termsByDevice } from '#placement/charges.js';
import { present } from '../../admin/views/present.js';

/** What the fold of a worker does not keep of its residents, and people like to see. */
export interface ResidentFacts {
  readonly computesOn?: readonly string[];
  readonly cores?: readonly number[];
  readonly contextTokens?: number;
  readonly loadStartedAt?: string;
}

/** What a resident holds: as measured, or as planned while it loads. */
export function memoryOf(resident: Resident): ResidentItem['memory'] {
  const { measured } = resident;
  if (!measured) {
    const planned = termsByDevice(resident.need);
    return [...planned].map(([deviceId, bytes]) => ({ deviceId, bytes, basis: 'planned' }));
  }
  return measured.byDevice.map((d) => ({
    deviceId: d.deviceId,
    bytes: sumOf(d),
    basis: 'measured' as const,
  }));
}

export function residentItem(
  worker: WorkerState,
  resident: Resident,
  facts: ResidentFacts = {},
): ResidentItem {
  const { contract, leaving, measured } = resident;
  const engine = resident.engine ?? contract.engine;
  return {
    ...present({
      residentId: resident.residentId,
      workerId: worker.workerId,
      workerName: worker.name || undefined,
      modelKey: resident.modelKey,
      artifact: resident.artifact,
      rung: resident.rung,
      kind: resident.kind,
      leaving:
        leaving && present({ reason: leaving.reason, decisionId: leaving.by, started: leaving.started }),
      engine: { ...engine },
      contextTokens: facts.contextTokens ?? measured?.contextTokens ?? contract.contextTokens,
      slots: measured?.slots ?? contract.slots,
      kvType: contract.kvType,
      hostAnonymousBytes: measured?.hostAnonymousBytes,
      hostResidentBytes: measured?.hostResidentBytes,
      computesOn: facts.computesOn,
      cores: facts.cores ?? contract.cores,
      port: resident.port,
      pid: resident.pid,
      decisionId: resident.decisionId,
      decidedAt: resident.decidedAt,
      loadStartedAt: resident.loadStartedAt,
      readyAt: resident.readyAt,
    }),
    phase: resident.phase,
    memory: memoryOf(resident),
  };
}

const END_REASONS: Partial<Record<WorkerEvent['type'], string>> = {
  ResidentEvicted: 'evicted',
  ResidentCrashed: 'crashed',
  ResidentFoundGone: 'found-gone',
  LoadFailed: 'load-failed',
  DecisionClosed: 'closed',
};

/** The last that is heard of a resident. */
export function endedItem(item: ResidentItem, { event, metadata }: Recorded<WorkerEvent>): ResidentItem {
  return {
    ...item,
    phase: 'ended',
    endedAt: metadata.at,
    endReason: END_REASONS[event.type] ?? 'closed',
    endDetail: endDetail(event),
  };
}

function endDetail({ type, data }: WorkerEvent): unknown {
  if (type === 'ResidentEvicted') return { reason: data.reason };
  if (type === 'ResidentCrashed')
    return present({
      exitCode: data.exitCode,
      signal: data.signal,
      during: data.during,
      unansweredSeconds: data.unansweredSeconds,
    });
  if (type === 'ResidentFoundGone') return { pid: data.pid };
  if (type === 'LoadFailed') return { class: data.class, message: data.message, seconds: data.seconds };
  return type === 'DecisionClosed' ? { why: data.why, reason: data.reason } : {};
}

/** The lower of what the start and a setting allow; undefined when neither limits it. */
export function limitOf({ limits }: Pick<WorkerState, 'limits'>, resource: string): number | undefined {
  const set = [limits.designation.get(resource), limits.setting.get(resource)].filter((v) => v !== undefined);
  return set.length === 0 ? undefined : Math.min(...set);
}

/** Host memory first, then the accelerators. */
export function deviceItems(worker: WorkerState): readonly DeviceItem[] {
  const held = new Map<string, number>();
  for (const resident of worker.residents.values())
    for (const { deviceId, bytes } of memoryOf(resident))
      held.set(deviceId, (held.get(deviceId) ?? 0) + bytes);
  const ram = { deviceId: RAM, kind: 'cpu', name: 'RAM', totalBytes: worker.ramBytes };
  const listed = worker.devices.some(({ deviceId }) => deviceId === RAM);
  const all = [...(listed || worker.ramBytes === undefined ? [] : [ram]), ...worker.devices];
  return all.map((device) => ({
    workerId: worker.workerId,
    workerName: worker.name,
    workerLost: worker.lost,
    residentBytes: held.get(device.deviceId) ?? 0,
    ...present({
      deviceId: device.deviceId,
      kind: device.kind,
      name: device.name,
      totalBytes: device.totalBytes,
      limitBytes: limitOf(worker, device.deviceId),
      reservedBytes: 'driverReservedBytes' in device ? device.driverReservedBytes : undefined,
      foreignBytes: worker.foreign.get(device.deviceId),
    }),
  }));
}

/** Keeps what the fold does not. @returns the resident that it says something new of. */
export function noteFacts(
  facts: Map<ResidentId, ResidentFacts>,
  { event, metadata }: Recorded<WorkerEvent>,
): ResidentId | undefined {
  const note = (id: ResidentId, more: ResidentFacts) => {
    facts.set(id, { ...facts.get(id), ...more });
    return id;
  };
  const { type, data } = event;
  if (type === 'LoadStarted') {
    const { residentId, cores } = data;
    return note(residentId, { loadStartedAt: metadata.at, ...(cores ? { cores } : {}) });
  }
  if (type === 'ResidentReady') return note(data.residentId, { computesOn: data.computesOn });
  if (type === 'ContextGrown') return note(data.residentId, { contextTokens: data.to });
  if (type === 'CoresRepinned') return note(data.residentId, { cores: data.to });
  return undefined;
}

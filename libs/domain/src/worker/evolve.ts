import { onceEach, type StreamFold } from '../decider.js';
import type { Recorded } from '../events/envelope.js';
import type { PlacementDecidedData, WorkerEvent } from '../events/worker-events.js';
import type { DecisionId, DeviceId, ResidentId, WorkerId } from '../ids.js';
import { classKey, placementClassOf } from '../placement-terms.js';
import type { FailedPlan, OpenDecision, Resident, WorkerState } from './state.js';

export const initialWorker = (id: WorkerId): WorkerState => ({
  workerId: id,
  registered: false,
  name: '',
  host: '',
  dataAddress: '',
  bootId: '',
  engines: [],
  devices: [],
  physicalCores: 0,
  limits: { designation: new Map(), setting: new Map() },
  foreign: new Map(),
  silent: new Map(),
  lost: false,
  residents: new Map(),
  openDecisions: new Map(),
  pins: new Set(),
  revision: -1,
  failedPlans: new Map(),
  seen: [],
});

/** Folds one event of `worker-<id>`. Pure: the given state is never changed. An id seen before changes only the revision. */
export const evolveWorker = onceEach(apply);

function apply(state: WorkerState, recorded: Recorded<WorkerEvent>): WorkerState {
  const { event, metadata } = recorded;
  switch (event.type) {
    case 'WorkerRegistered': {
      const { name, host, dataAddress, bootId, engines } = event.data;
      return { ...state, registered: true, lost: false, name, host, dataAddress, bootId, engines };
    }
    case 'CapacityMeasured': {
      // A rate that was measured stays until a better one comes; everything else is as told last.
      const { memoryBandwidth = state.memoryBandwidth, ...told } = event.data;
      return { ...state, ...told, ...(memoryBandwidth ? { memoryBandwidth } : {}) };
    }
    case 'LimitSet': {
      const { tier, resource, value } = event.data;
      return {
        ...state,
        limits: { ...state.limits, [tier]: withEntry(state.limits[tier], resource, value ?? undefined) },
      };
    }
    case 'ForeignUseChanged':
      return foreignUse(state, event.data.deviceId, event.data.bytes, metadata.at);
    case 'BusyCoresChanged':
      return { ...state, busyCpus: event.data.cpus };
    case 'WorkerLost':
      return { ...state, lost: true };
    case 'WorkerReturned':
      return { ...state, lost: false };
    case 'PlacementDecided': {
      const data = event.data;
      const open: OpenDecision = {
        decisionId: data.decisionId,
        residentId: data.residentId,
        data,
        revision: recorded.revision,
        eventId: recorded.id,
      };
      const planned: Resident = {
        residentId: data.residentId,
        decisionId: data.decisionId,
        modelKey: data.modelKey,
        artifact: data.artifact,
        rung: data.rung,
        ask: data.ask,
        contract: data.contract,
        kind: data.contract.kind,
        need: data.need,
        phase: 'planned',
        decidedAt: metadata.at,
        ...(data.priority === undefined ? {} : { priority: data.priority }),
      };
      let residents = withEntry(state.residents, data.residentId, planned);
      for (const victim of data.victims) {
        residents = change(residents, victim.residentId, (r) => ({
          ...r,
          leaving: {
            by: data.decisionId,
            reason: 'room',
            started: false,
            sinceRevision: recorded.revision,
          },
        }));
      }
      return { ...state, residents, openDecisions: withEntry(state.openDecisions, data.decisionId, open) };
    }
    case 'PlacementRefused':
      return state;
    case 'UnloadDecided': {
      const { residentId, decisionId } = event.data;
      return {
        ...state,
        residents: change(state.residents, residentId, (r) =>
          r.leaving
            ? r
            : {
                ...r,
                leaving: {
                  by: decisionId,
                  reason: 'idle',
                  started: false,
                  sinceRevision: recorded.revision,
                },
              },
        ),
      };
    }
    case 'DecisionClosed':
      return closeDecision(state, event.data.decisionId);
    case 'PinSet': {
      const pins = new Set(state.pins);
      if (event.data.pinned) pins.add(event.data.modelKey);
      else pins.delete(event.data.modelKey);
      return { ...state, pins };
    }
    case 'EvictionStarted': {
      const { residentId, decisionId, reason } = event.data;
      return {
        ...state,
        residents: change(state.residents, residentId, (r) => ({
          ...r,
          leaving: {
            ...(decisionId ? { by: decisionId } : {}),
            reason,
            started: true,
            sinceRevision: r.leaving?.sinceRevision ?? recorded.revision,
          },
        })),
      };
    }
    case 'ResidentEvicted':
    case 'ResidentCrashed':
    case 'ResidentFoundGone':
      return endResident(state, event.data.residentId);
    case 'EvictionFailed':
      return { ...state, residents: change(state.residents, event.data.residentId, stays) };
    case 'LoadStarted': {
      const { residentId, port, pid, pidStartTicks, engine } = event.data;
      return {
        ...state,
        residents: change(state.residents, residentId, (r) =>
          r.phase === 'planned'
            ? {
                ...r,
                phase: 'loading',
                port,
                pid,
                engine,
                loadStartedAt: metadata.at,
                ...(pidStartTicks === undefined ? {} : { pidStartTicks }),
              }
            : r,
        ),
      };
    }
    case 'LoadRestarted': {
      const { residentId, port, pid, pidStartTicks } = event.data;
      return {
        ...state,
        residents: change(state.residents, residentId, (r) => {
          if (r.phase !== 'loading') return r;
          const { pidStartTicks: _before, ...rest } = r;
          return { ...rest, port, pid, ...(pidStartTicks === undefined ? {} : { pidStartTicks }) };
        }),
      };
    }
    case 'ResidentReady': {
      const { residentId, measured } = event.data;
      const resident = state.residents.get(residentId);
      if (!resident || resident.phase === 'ready') return state;
      return {
        ...state,
        residents: withEntry(state.residents, residentId, {
          ...resident,
          phase: 'ready' as const,
          measured,
          readyAt: metadata.at,
        }),
        openDecisions: withEntry(state.openDecisions, resident.decisionId, undefined),
        failedPlans: withEntry(state.failedPlans, planKey(resident), undefined),
      };
    }
    case 'LoadFailed': {
      const resident = state.residents.get(event.data.residentId);
      if (!resident) return state;
      const ended = endResident(state, resident.residentId);
      if (event.data.class === 'cancelled') return ended;
      const key = planKey(resident);
      const failed: FailedPlan = {
        modelKey: resident.modelKey,
        artifact: resident.artifact,
        class: event.data.class,
        message: event.data.message,
        at: metadata.at,
        times: (state.failedPlans.get(key)?.times ?? 0) + 1,
        roomBytes: roomTried(state.openDecisions.get(resident.decisionId)?.data),
      };
      return { ...ended, failedPlans: withEntry(state.failedPlans, key, failed) };
    }
    case 'ResidentAdopted':
      return {
        ...state,
        residents: change(state.residents, event.data.residentId, (r) => {
          const { pid, measured } = event.data;
          return { ...r, pid, ...(measured === undefined || r.phase !== 'ready' ? {} : { measured }) };
        }),
      };
    case 'ResidentRemeasured':
      return {
        ...state,
        residents: change(state.residents, event.data.residentId, (r) =>
          r.phase === 'ready' ? { ...r, measured: event.data.measured } : r,
        ),
      };
    case 'ContextGrown':
      return state;
    case 'CoresRepinned': {
      const { residentId, to } = event.data;
      return {
        ...state,
        residents: change(state.residents, residentId, (r) => ({ ...r, cores: to })),
      };
    }
  }
}

/** @param bytes absent when it is not known any more: what was known last is kept beside, for whoever asks why. */
function foreignUse(state: WorkerState, id: DeviceId, bytes: number | undefined, since: string): WorkerState {
  const before = state.foreign.get(id);
  const silent = { since, ...(before === undefined ? {} : { foreignBytes: before }) };
  return {
    ...state,
    foreign: withEntry(state.foreign, id, bytes),
    silent: withEntry(state.silent, id, bytes === undefined ? (state.silent.get(id) ?? silent) : undefined),
  };
}

/** Key under which a plan's failures are remembered: model and placement class. */
export const planKey = (r: Pick<Resident, 'modelKey' | 'artifact' | 'contract'>): string =>
  `${r.modelKey}|${classKey(placementClassOf(r.artifact, r.contract))}`;

/** The room that a load had: what was free when it was decided and what its victims gave up for it. */
function roomTried(data: PlacementDecidedData | undefined): FailedPlan['roomBytes'] {
  return (data?.room ?? []).map(({ deviceId, bytes }) => {
    if (bytes === undefined) return { deviceId };
    const freed = data?.victims.flatMap((v) => v.frees).filter((f) => f.deviceId === deviceId) ?? [];
    return { deviceId, bytes: freed.reduce((sum, f) => sum + f.bytes, bytes) };
  });
}

/** A decision ended without a load: its resident was never there, and its victims that were not begun on stay. */
function closeDecision(state: WorkerState, id: DecisionId): WorkerState {
  const open = state.openDecisions.get(id);
  if (!open) return state;
  return endResident(state, open.residentId);
}

/** Takes a resident away, ends the decision that made it, and lets go of that decision's victims not begun on. */
function endResident(state: WorkerState, id: ResidentId): WorkerState {
  const resident = state.residents.get(id);
  if (!resident) return state;
  const open = state.openDecisions.get(resident.decisionId);
  let residents = withEntry(state.residents, id, undefined);
  for (const victim of open?.data.victims ?? []) {
    residents = change(residents, victim.residentId, (r) =>
      r.leaving?.by === resident.decisionId && !r.leaving.started ? stays(r) : r,
    );
  }
  return {
    ...state,
    residents,
    openDecisions: withEntry(state.openDecisions, resident.decisionId, undefined),
  };
}

function stays(resident: Resident): Resident {
  const { leaving: _leaving, ...rest } = resident;
  return rest;
}

function change(
  residents: ReadonlyMap<ResidentId, Resident>,
  id: ResidentId,
  to: (resident: Resident) => Resident,
): ReadonlyMap<ResidentId, Resident> {
  const resident = residents.get(id);
  return resident ? withEntry(residents, id, to(resident)) : residents;
}

function withEntry<K, V>(map: ReadonlyMap<K, V>, key: K, value: V | undefined): ReadonlyMap<K, V> {
  const copy = new Map(map);
  if (value === undefined) copy.delete(key);
  else copy.set(key, value);
  return copy;
}

export const workerFold = (id: WorkerId): StreamFold<WorkerState, WorkerEvent> => ({
  version: 4,
  initial: () => initialWorker(id),
  evolve: evolveWorker,
});

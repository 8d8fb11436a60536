import type { MeasuredMemory } from '#domain/events/worker-events.js';
import { sumOf } from '#domain/placement-terms.js';
import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import { type Handler, type Handlers, secondsBetween } from './handler.js';
import { endResident, newResident } from './resident-life.js';

const touches = (views: Views, recorded: { event: { data: { residentId: string } } }): void =>
  views.residents.want(recorded.event.data.residentId);

const loadStarted: Handler<'LoadStarted'> = {
  touches: (views, recorded) => {
    touches(views, recorded);
    views.decisions.want(recorded.event.data.decisionId);
  },
  apply: (views, recorded) => {
    const data = recorded.event.data;
    const row = views.residents.get(data.residentId) ?? newResident(data.residentId, recorded);
    if (row.phase !== 'planned') return;
    views.residents.put({
      ...row,
      phase: 'loading',
      decision_id: row.decision_id ?? data.decisionId,
      model_key: data.modelKey,
      artifact: data.artifact,
      engine_kind: data.engine.kind,
      engine_version: data.engine.version,
      engine_build: data.engine.build,
      arguments: [...data.arguments],
      port: data.port,
      pid: data.pid,
      cores: data.cores ? [...data.cores] : row.cores,
      load_started_at: recorded.metadata.at,
      load_started_event_id: recorded.id,
    });
    const decision = views.decisions.get(data.decisionId);
    if (decision?.state !== 'open') return;
    views.decisions.put({
      ...decision,
      actual_ready_seconds: secondsBetween(decision.decided_at, recorded.metadata.at),
    });
  },
};

const loadRestarted: Handler<'LoadRestarted'> = {
  touches,
  apply: (views, { event: { data } }) => {
    if (views.residents.get(data.residentId)?.phase !== 'loading') return;
    views.residents.patch([data.residentId], { port: data.port, pid: data.pid });
  },
};

const memoryOf = (measured: MeasuredMemory) => ({
  context_tokens: measured.contextTokens,
  slots: measured.slots,
  measured_memory: measured.byDevice.map((d) => ({
    deviceId: d.deviceId,
    bytes: sumOf(d),
  })),
  host_anonymous_bytes: measured.hostAnonymousBytes,
  host_resident_bytes: measured.hostResidentBytes,
});

const ready: Handler<'ResidentReady'> = {
  touches,
  apply: (views, recorded) => {
    const { residentId, stagedAt, loadedAt, measured, computesOn, kind } = recorded.event.data;
    const row = views.residents.get(residentId) ?? newResident(residentId, recorded);
    if (row.phase === 'ready' || row.phase === 'ended') return;
    const at = recorded.metadata.at;
    views.residents.put({
      ...row,
      phase: 'ready',
      kind,
      ...memoryOf(measured),
      computes_on: [...computesOn],
      staged_at: stagedAt,
      loaded_at: loadedAt,
      ready_at: at,
    });
    const decision = row.decision_id === null ? undefined : views.decisions.get(row.decision_id);
    if (decision?.state !== 'open') return;
    views.decisions.put({
      ...decision,
      state: 'ready',
      actual_load_seconds: secondsBetween(row.load_started_at, loadedAt),
      ended_at: at,
      ended_event_id: recorded.id,
    });
  },
};

const loadFailed: Handler<'LoadFailed'> = {
  touches,
  apply: (views, recorded) => {
    const { residentId, class: failureClass, message, seconds } = recorded.event.data;
    const decisionId = views.residents.get(residentId)?.decision_id;
    if (!endResident(views, recorded, residentId, 'load-failed', { class: failureClass, message, seconds }))
      return;
    // The class says more than that the resident ended.
    if (decisionId && views.decisions.get(decisionId)?.ended_event_id === recorded.id) {
      views.decisions.patch([decisionId], { failure_class: failureClass, reason: message });
    }
  },
};

const crashed: Handler<'ResidentCrashed'> = {
  touches,
  apply: (views, recorded) => {
    const { residentId, exitCode, signal, during, unansweredSeconds } = recorded.event.data;
    endResident(views, recorded, residentId, 'crashed', { exitCode, signal, during, unansweredSeconds });
  },
};

const foundGone: Handler<'ResidentFoundGone'> = {
  touches,
  apply: (views, recorded) => {
    endResident(views, recorded, recorded.event.data.residentId, 'found-gone', {
      pid: recorded.event.data.pid,
    });
  },
};

const live = (views: Views, residentId: string, change: Partial<Row<'residents'>>): void => {
  if (views.residents.get(residentId)?.phase !== 'ended') views.residents.patch([residentId], change);
};

const adopted: Handler<'ResidentAdopted'> = {
  touches,
  apply: (views, { event: { data }, metadata }) =>
    live(views, data.residentId, {
      pid: data.pid,
      adopted_at: metadata.at,
      ...(data.measured === undefined ? {} : memoryOf(data.measured)),
    }),
};

const remeasured: Handler<'ResidentRemeasured'> = {
  touches,
  apply: (views, { event: { data } }) => live(views, data.residentId, memoryOf(data.measured)),
};

const grown: Handler<'ContextGrown'> = {
  touches,
  apply: (views, { event }) => live(views, event.data.residentId, { context_tokens: event.data.to }),
};

const repinned: Handler<'CoresRepinned'> = {
  touches,
  apply: (views, { event }) => live(views, event.data.residentId, { cores: [...event.data.to] }),
};

export const residentHandlers = {
  LoadStarted: loadStarted,
  LoadRestarted: loadRestarted,
  ResidentReady: ready,
  LoadFailed: loadFailed,
  ResidentCrashed: crashed,
  ResidentFoundGone: foundGone,
  ResidentAdopted: adopted,
  ResidentRemeasured: remeasured,
  ContextGrown: grown,
  CoresRepinned: repinned,
} satisfies Handlers;

import type { PlacementDecidedData, PlacementRefusedData } from '#domain/events/index.js';
import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import {
  byDevice,
  type Handler,
  type Handlers,
  positionOf,
  type RecordedOf,
  streamId,
  sumBytes,
} from './handler.js';
import { endResident, newResident } from './resident-life.js';

type Decided = RecordedOf<'PlacementDecided'> | RecordedOf<'PlacementRefused'>;

/** What an admission and a refusal have in common. */
function fromWorking(recorded: Decided): Row<'decisions'> {
  const data: PlacementDecidedData | PlacementRefusedData = recorded.event.data;
  return {
    decision_id: data.decisionId,
    event_id: recorded.id,
    worker_id: streamId(recorded),
    admitted: false,
    cause: data.cause.kind,
    call_id: data.cause.kind === 'call' ? data.cause.callId : null,
    model_key: data.modelKey,
    artifact: null,
    rung: null,
    resident_id: null,
    context_tokens: null,
    slots: null,
    kv_type: null,
    need_bytes: null,
    victims: [],
    state: 'refused',
    code: null,
    reason: null,
    refusals: null,
    predicted_ready_seconds: null,
    predicted_load_seconds: null,
    predicted_output_seconds: null,
    actual_ready_seconds: null,
    actual_load_seconds: null,
    failure_class: null,
    decided_at: recorded.metadata.at,
    valid_until: null,
    ended_at: null,
    ended_event_id: null,
    position: positionOf(recorded),
  };
}

function keepWorking(views: Views, recorded: Decided): void {
  views.decision_workings.put({
    decision_id: recorded.event.data.decisionId,
    event_id: recorded.id,
    stream: recorded.stream,
    revision: recorded.revision,
    type: recorded.event.type,
    at: recorded.metadata.at,
    by_whom: recorded.metadata.by,
    data: recorded.event.data,
  });
}

const decided: Handler<'PlacementDecided'> = {
  touches: (views, { event }) => {
    views.decisions.want(event.data.decisionId);
    views.residents.want(event.data.residentId);
    for (const victim of event.data.victims) views.residents.want(victim.residentId);
  },
  apply: (views, recorded) => {
    const data = recorded.event.data;
    if (views.decisions.get(data.decisionId)) return;
    const { contract, predicted } = data;
    views.decisions.put({
      ...fromWorking(recorded),
      admitted: true,
      artifact: data.artifact,
      rung: data.rung,
      resident_id: data.residentId,
      context_tokens: contract.contextTokens,
      slots: contract.slots,
      kv_type: contract.kvType,
      need_bytes: sumBytes(data.need),
      victims: data.victims.map((victim) => victim.residentId),
      state: 'open',
      predicted_ready_seconds: predicted.readyInSeconds ?? null,
      predicted_load_seconds: predicted.loadSeconds ?? null,
      predicted_output_seconds: predicted.outputSeconds ?? null,
      valid_until: data.validUntil,
    });
    keepWorking(views, recorded);
    views.residents.put({
      ...newResident(data.residentId, recorded),
      decision_id: data.decisionId,
      model_key: data.modelKey,
      artifact: data.artifact,
      rung: data.rung,
      kind: contract.kind,
      engine_kind: contract.engine.kind,
      engine_build: contract.engine.build,
      context_tokens: contract.contextTokens,
      slots: contract.slots,
      kv_type: contract.kvType,
      ask: data.ask,
      contract,
      cores: contract.cores ? [...contract.cores] : null,
      predicted_memory: byDevice(data.need),
      decided_at: recorded.metadata.at,
    });
    for (const victim of data.victims) {
      if (views.residents.get(victim.residentId)?.phase === 'ended') continue;
      views.residents.patch([victim.residentId], {
        leaving_reason: 'room',
        leaving_decision_id: data.decisionId,
        leaving_started: false,
      });
    }
  },
};

const refused: Handler<'PlacementRefused'> = {
  touches: (views, { event }) => views.decisions.want(event.data.decisionId),
  apply: (views, recorded) => {
    const { decisionId, code, reason, count } = recorded.event.data;
    if (views.decisions.get(decisionId)) return;
    views.decisions.put({ ...fromWorking(recorded), code, reason, refusals: count });
    keepWorking(views, recorded);
  },
};

const closed: Handler<'DecisionClosed'> = {
  touches: (views, { event }) => views.decisions.want(event.data.decisionId),
  apply: (views, recorded) => {
    const { decisionId, why, reason } = recorded.event.data;
    const decision = views.decisions.get(decisionId);
    if (decision?.state !== 'open') return;
    views.decisions.put({
      ...decision,
      state: 'closed',
      code: why,
      reason,
      ended_at: recorded.metadata.at,
      ended_event_id: recorded.id,
    });
    if (decision.resident_id !== null) {
      endResident(views, recorded, decision.resident_id, 'closed', { why, reason });
    }
  },
};

/** It makes no resident and has no candidates: what becomes of it is told with its eviction. */
const unload: Handler<'UnloadDecided'> = {
  touches: (views, { event }) => views.residents.want(event.data.residentId),
  apply: (views, { event }) => {
    const { residentId, decisionId } = event.data;
    const resident = views.residents.get(residentId);
    if (resident === undefined || resident.phase === 'ended' || resident.leaving_reason !== null) return;
    views.residents.patch([residentId], {
      leaving_reason: 'idle',
      leaving_decision_id: decisionId,
      leaving_started: false,
    });
  },
};

export const decisionHandlers = {
  PlacementDecided: decided,
  PlacementRefused: refused,
  DecisionClosed: closed,
  UnloadDecided: unload,
} satisfies Handlers;

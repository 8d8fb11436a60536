import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import { type Handler, type Handlers, positionOf, type RecordedOf, streamId, sumBytes } from './handler.js';
import { endResident, notLeaving } from './resident-life.js';

type EvictionEvent =
  RecordedOf<'EvictionStarted'> | RecordedOf<'ResidentEvicted'> | RecordedOf<'EvictionFailed'>;

const touches = (views: Views, recorded: EvictionEvent): void => {
  views.residents.want(recorded.event.data.residentId);
  views.evictions.want(recorded.id);
};

const newEviction = (views: Views, recorded: EvictionEvent): Row<'evictions'> => {
  const { residentId, decisionId, reason } = recorded.event.data;
  return {
    eviction_id: recorded.id,
    resident_id: residentId,
    worker_id: streamId(recorded),
    decision_id: decisionId ?? null,
    model_key: views.residents.get(residentId)?.model_key ?? null,
    reason,
    state: 'running',
    freed: null,
    freed_bytes: null,
    seconds: null,
    failure: null,
    message: null,
    started_at: null,
    ended_at: null,
    position: positionOf(recorded),
  };
};

/** The eviction of this resident that runs; its own row where the beginning is missing from the log. */
function running(views: Views, recorded: EvictionEvent): Row<'evictions'> {
  const id = views.residents.get(recorded.event.data.residentId)?.eviction_id;
  const eviction = id ? views.evictions.get(id) : undefined;
  return eviction?.state === 'running' ? eviction : newEviction(views, recorded);
}

const started: Handler<'EvictionStarted'> = {
  touches,
  apply: (views, recorded) => {
    const { residentId, decisionId, reason } = recorded.event.data;
    const resident = views.residents.get(residentId);
    if (views.evictions.get(recorded.id) || resident?.phase === 'ended') return;
    if (resident?.eviction_id && views.evictions.get(resident.eviction_id)?.state === 'running') return;
    views.evictions.put({ ...newEviction(views, recorded), started_at: recorded.metadata.at });
    views.residents.patch([residentId], {
      eviction_id: recorded.id,
      leaving_reason: reason,
      leaving_decision_id: decisionId ?? null,
      leaving_started: true,
    });
  },
};

const evicted: Handler<'ResidentEvicted'> = {
  touches,
  apply: (views, recorded) => {
    const { residentId, reason, freed, seconds } = recorded.event.data;
    const eviction = running(views, recorded);
    if (!endResident(views, recorded, residentId, 'evicted', { reason })) return;
    views.residents.patch([residentId], { eviction_id: eviction.eviction_id, leaving_reason: reason });
    views.evictions.put({
      ...eviction,
      state: 'done',
      freed,
      freed_bytes: sumBytes(freed),
      seconds,
      ended_at: recorded.metadata.at,
    });
  },
};

const failed: Handler<'EvictionFailed'> = {
  touches,
  apply: (views, recorded) => {
    const { residentId, why, message } = recorded.event.data;
    if (views.evictions.get(recorded.id) || views.residents.get(residentId)?.phase === 'ended') return;
    const eviction = running(views, recorded);
    views.evictions.put({
      ...eviction,
      state: 'failed',
      failure: why,
      message,
      ended_at: recorded.metadata.at,
    });
    views.residents.patch([residentId], { eviction_id: eviction.eviction_id, ...notLeaving });
  },
};

export const evictionHandlers = {
  EvictionStarted: started,
  ResidentEvicted: evicted,
  EvictionFailed: failed,
} satisfies Handlers;

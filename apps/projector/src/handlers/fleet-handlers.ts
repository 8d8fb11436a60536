import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import { type Handler, type Handlers, positionOf } from './handler.js';

const touches = (views: Views, recorded: { event: { data: { apiId: string } } }): void =>
  views.apis.want(recorded.event.data.apiId);

const newApi = (apiId: string, recorded: Recorded<BerthEvent>): Row<'apis'> => ({
  api_id: apiId,
  host: null,
  boot_id: null,
  pid: null,
  agent_line: null,
  version: null,
  started_at: null,
  ended_at: null,
  end_reason: null,
  lost_reason: null,
  found_by: null,
  position: positionOf(recorded),
});

const started: Handler<'ApiStarted'> = {
  touches,
  apply: (views, recorded) => {
    const { apiId, host, bootId, pid, agentLine, version, startedAt } = recorded.event.data;
    const row = views.apis.get(apiId) ?? newApi(apiId, recorded);
    if (row.started_at !== null) return;
    views.apis.put({
      ...row,
      host,
      boot_id: bootId,
      pid,
      agent_line: agentLine,
      version,
      started_at: startedAt,
    });
  },
};

const stopped: Handler<'ApiStopped'> = {
  touches,
  apply: (views, recorded) => {
    const row = views.apis.get(recorded.event.data.apiId);
    if (!row || row.ended_at !== null) return;
    views.apis.put({ ...row, ended_at: recorded.metadata.at, end_reason: 'stopped' });
  },
};

const lost: Handler<'ApiLost'> = {
  touches,
  apply: (views, recorded) => {
    const { apiId, foundBy, reason } = recorded.event.data;
    const row = views.apis.get(apiId);
    if (!row || row.ended_at !== null) return;
    views.apis.put({
      ...row,
      ended_at: recorded.metadata.at,
      end_reason: 'lost',
      lost_reason: reason,
      found_by: foundBy,
    });
  },
};

export const fleetHandlers = { ApiStarted: started, ApiStopped: stopped, ApiLost: lost } satisfies Handlers;

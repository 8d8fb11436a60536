import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import { type Handler, type Handlers, positionOf, type RecordedOf, streamId } from './handler.js';

type ActionRecorded =
  | RecordedOf<'OperatorActionRequested'>
  | RecordedOf<'OperatorActionStarted'>
  | RecordedOf<'OperatorActionFinished'>;

const touches = (views: Views, recorded: ActionRecorded): void =>
  views.operator_actions.want(recorded.event.data.actionId);

const rowOf = (views: Views, recorded: ActionRecorded): Row<'operator_actions'> =>
  views.operator_actions.get(recorded.event.data.actionId) ?? {
    action_id: recorded.event.data.actionId,
    worker_id: streamId(recorded),
    action: null,
    target: null,
    by_whom: null,
    state: 'requested',
    result: null,
    requested_at: null,
    started_at: null,
    ended_at: null,
    position: positionOf(recorded),
  };

const requested: Handler<'OperatorActionRequested'> = {
  touches,
  apply: (views, recorded) => {
    const row = rowOf(views, recorded);
    if (row.requested_at !== null) return;
    const { action, target, by } = recorded.event.data;
    views.operator_actions.put({ ...row, action, target, by_whom: by, requested_at: recorded.metadata.at });
  },
};

const started: Handler<'OperatorActionStarted'> = {
  touches,
  apply: (views, recorded) => {
    const row = rowOf(views, recorded);
    if (row.state !== 'requested') return;
    views.operator_actions.put({ ...row, state: 'running', started_at: recorded.metadata.at });
  },
};

const finished: Handler<'OperatorActionFinished'> = {
  touches,
  apply: (views, recorded) => {
    const row = rowOf(views, recorded);
    if (row.ended_at !== null) return;
    const { state, result } = recorded.event.data;
    views.operator_actions.put({ ...row, state, result, ended_at: recorded.metadata.at });
  },
};

export const operatorHandlers = {
  OperatorActionRequested: requested,
  OperatorActionStarted: started,
  OperatorActionFinished: finished,
} satisfies Handlers;

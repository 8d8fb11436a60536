import { hasEnded, type OperatorAction } from '#domain/operator/operator.js';
import type { Pull } from '#domain/pulls/pulls.js';
import type { OperatorItem, PullItem } from '#domain/wire/index.js';
import { present } from '../../admin/views/present.js';

export const pullItem = (workerId: string, pull: Pull): PullItem => ({
  pullId: pull.pullId,
  workerId,
  state: pull.state,
  files: pull.files,
  pulledBytes: pull.files.reduce((sum, { bytes }) => sum + bytes, 0),
  ...present({
    source: pull.source || undefined,
    by: pull.by || undefined,
    reason: pull.reason,
    requestedAt: pull.requestedAt,
    endedAt: pull.endedAt,
  }),
});

export const operatorItem = (workerId: string, action: OperatorAction): OperatorItem => ({
  actionId: action.actionId,
  workerId,
  state: action.state,
  ...present({
    action: action.action || undefined,
    target: action.target || undefined,
    by: action.by || undefined,
    result: action.result,
    requestedAt: action.requestedAt,
    startedAt: action.startedAt,
    endedAt: hasEnded(action) ? action.finishedAt : undefined,
  }),
});

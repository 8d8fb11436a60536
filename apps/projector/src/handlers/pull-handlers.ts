import type { PulledFile } from '#domain/pulls/pulls.js';
import type { Row } from '../rows/row-set.js';
import type { Views } from '../rows/views.js';
import { type Handler, type Handlers, positionOf, type RecordedOf, streamId } from './handler.js';

type PullRecorded =
  | RecordedOf<'PullRequested'>
  | RecordedOf<'FilePulled'>
  | RecordedOf<'PullFinished'>
  | RecordedOf<'PullRefused'>
  | RecordedOf<'PullFailed'>;

const touches = (views: Views, recorded: PullRecorded): void => views.pulls.want(recorded.event.data.pullId);

/** The pull as it is before this event; undefined once it has ended. */
function running(views: Views, recorded: PullRecorded): Row<'pulls'> | undefined {
  const row = views.pulls.get(recorded.event.data.pullId) ?? {
    pull_id: recorded.event.data.pullId,
    worker_id: streamId(recorded),
    source: null,
    by_whom: null,
    state: 'running',
    reason: null,
    files: [],
    pulled_bytes: 0,
    requested_at: null,
    ended_at: null,
    position: positionOf(recorded),
  };
  return row.state === 'running' ? row : undefined;
}

const requested: Handler<'PullRequested'> = {
  touches,
  apply: (views, recorded) => {
    const row = running(views, recorded);
    if (!row || row.requested_at !== null) return;
    const { source, by } = recorded.event.data;
    views.pulls.put({ ...row, source, by_whom: by, requested_at: recorded.metadata.at });
  },
};

const filePulled: Handler<'FilePulled'> = {
  touches,
  apply: (views, recorded) => {
    const row = running(views, recorded);
    if (!row) return;
    const { pullId: _pullId, ...file } = recorded.event.data;
    const files = [...(row.files as readonly PulledFile[]).filter((f) => f.file !== file.file), file];
    views.pulls.put({ ...row, files, pulled_bytes: files.reduce((sum, f) => sum + f.bytes, 0) });
  },
};

function end(views: Views, recorded: PullRecorded, state: string, reason: string | null): void {
  const row = running(views, recorded);
  if (row) views.pulls.put({ ...row, state, reason, ended_at: recorded.metadata.at });
}

export const pullHandlers = {
  PullRequested: requested,
  FilePulled: filePulled,
  PullFinished: { touches, apply: (views, recorded) => end(views, recorded, 'finished', null) },
  PullRefused: {
    touches,
    apply: (views, recorded) => end(views, recorded, 'refused', recorded.event.data.reason),
  },
  PullFailed: {
    touches,
    apply: (views, recorded) => end(views, recorded, 'failed', recorded.event.data.reason),
  },
} satisfies Handlers;

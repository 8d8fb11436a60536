import type { StreamFold } from '../decider.js';
import type { Recorded } from '../events/envelope.js';
import type { DataOf, PullEvent } from '../events/index.js';
import type { WorkerId } from '../ids.js';

export type PullState = 'running' | 'finished' | 'refused' | 'failed';

export interface PulledFile {
  readonly file: string;
  readonly bytes: number;
  readonly seconds: number;
  readonly resumedFromBytes: number;
  readonly sha256?: string;
}

export interface Pull {
  readonly pullId: string;
  readonly source: string;
  readonly by: string;
  readonly state: PullState;
  readonly files: readonly PulledFile[];
  readonly requestedAt: string;
  readonly endedAt?: string;
  readonly reason?: string;
}

/** The transfers of one worker: all that run, and the last that have ended. */
export interface PullsState {
  readonly workerId: WorkerId;
  readonly pulls: ReadonlyMap<string, Pull>;
  readonly revision: number;
}

const KEPT_ENDED = 100;

export const initialPulls = (workerId: WorkerId): PullsState => ({
  workerId,
  pulls: new Map(),
  revision: -1,
});

/** Folds one event of `pull-<workerId>`; what follows the end of a pull changes nothing. */
export function evolvePulls(state: PullsState, recorded: Recorded<PullEvent>): PullsState {
  const { event, revision, metadata } = recorded;
  if (revision <= state.revision) return state;
  const known = state.pulls.get(event.data.pullId);
  if (known && known.state !== 'running') return { ...state, revision };
  const { pullId } = event.data;
  const pull: Pull = known ?? {
    pullId,
    source: '',
    by: '',
    state: 'running',
    files: [],
    requestedAt: metadata.at,
  };
  const pulls = new Map(state.pulls).set(pullId, step(pull, event, metadata.at));
  const ended = [...pulls.values()].filter((p) => p.state !== 'running');
  for (const old of ended.slice(0, -KEPT_ENDED)) pulls.delete(old.pullId);
  return { ...state, revision, pulls };
}

function step(pull: Pull, event: PullEvent, at: string): Pull {
  switch (event.type) {
    case 'PullRequested':
      return { ...pull, source: event.data.source, by: event.data.by };
    case 'FilePulled':
      return {
        ...pull,
        files: [...pull.files.filter((f) => f.file !== event.data.file), fileOf(event.data)],
      };
    case 'PullFinished':
      return { ...pull, state: 'finished', endedAt: at };
    case 'PullRefused':
      return { ...pull, state: 'refused', endedAt: at, reason: event.data.reason };
    case 'PullFailed':
      return { ...pull, state: 'failed', endedAt: at, reason: event.data.reason };
  }
}

function fileOf({ pullId: _pullId, ...file }: DataOf<'FilePulled'>): PulledFile {
  return file;
}

export const pullsFold = (workerId: WorkerId): StreamFold<PullsState, PullEvent> => ({
  version: 1,
  initial: () => initialPulls(workerId),
  evolve: evolvePulls,
});

import type { StreamFold } from '../decider.js';
import type { Recorded } from '../events/envelope.js';
import type { DataOf, OperatorEvent } from '../events/index.js';
import type { WorkerId } from '../ids.js';

export type ActionState = 'requested' | 'running' | DataOf<'OperatorActionFinished'>['state'];

export interface OperatorAction extends DataOf<'OperatorActionRequested'> {
  readonly state: ActionState;
  readonly requestedAt: string;
  readonly startedAt?: string;
  readonly finishedAt?: string;
  readonly result?: string;
}

/** What operators asked of one worker: everything that has not ended, and the last that have. */
export interface OperatorState {
  readonly workerId: WorkerId;
  /** By action id, oldest first. */
  readonly actions: ReadonlyMap<string, OperatorAction>;
  readonly revision: number;
}

const KEPT_FINISHED = 100;

export const initialOperator = (workerId: WorkerId): OperatorState => ({
  workerId,
  actions: new Map(),
  revision: -1,
});

export const hasEnded = (action: OperatorAction): boolean =>
  action.state !== 'requested' && action.state !== 'running';

/** Folds one event of `operator-<workerId>`. A step that was taken already, or follows the end, changes nothing. */
export function evolveOperator(state: OperatorState, recorded: Recorded<OperatorEvent>): OperatorState {
  const { event, revision, metadata } = recorded;
  if (revision <= state.revision) return state;
  const known = state.actions.get(event.data.actionId);
  const next = step(known, event, metadata.at);
  if (next === known) return { ...state, revision };
  const actions = new Map(state.actions).set(next.actionId, next);
  return { ...state, revision, actions: hasEnded(next) ? withoutOldest(actions) : actions };
}

function step(known: OperatorAction | undefined, event: OperatorEvent, at: string): OperatorAction {
  const action = known ?? {
    actionId: event.data.actionId,
    action: '',
    target: '',
    by: '',
    state: 'requested' as const,
    requestedAt: at,
  };
  switch (event.type) {
    case 'OperatorActionRequested':
      return known ?? { ...action, ...event.data };
    case 'OperatorActionStarted':
      return action.state === 'requested' ? { ...action, state: 'running', startedAt: at } : action;
    case 'OperatorActionFinished':
      return hasEnded(action)
        ? action
        : { ...action, state: event.data.state, result: event.data.result, finishedAt: at };
  }
}

/** Map order is the order of first events, so that the first that has ended is the oldest. */
function withoutOldest(actions: Map<string, OperatorAction>): ReadonlyMap<string, OperatorAction> {
  const ended = [...actions.values()].filter(hasEnded);
  for (const { actionId } of ended.slice(0, -KEPT_FINISHED)) actions.delete(actionId);
  return actions;
}

export const operatorFold = (workerId: WorkerId): StreamFold<OperatorState, OperatorEvent> => ({
  version: 1,
  initial: () => initialOperator(workerId),
  evolve: evolveOperator,
});

/** @returns no event when it stands in the log: the same request twice is one action. */
export const requestAction = (
  state: OperatorState,
  request: DataOf<'OperatorActionRequested'>,
): readonly OperatorEvent[] =>
  state.actions.has(request.actionId) ? [] : [{ type: 'OperatorActionRequested', data: request }];

export const startAction = (state: OperatorState, actionId: string): readonly OperatorEvent[] =>
  state.actions.get(actionId)?.state === 'requested'
    ? [{ type: 'OperatorActionStarted', data: { actionId } }]
    : [];

export function finishAction(
  state: OperatorState,
  finish: DataOf<'OperatorActionFinished'>,
): readonly OperatorEvent[] {
  const action = state.actions.get(finish.actionId);
  return action && !hasEnded(action) ? [{ type: 'OperatorActionFinished', data: finish }] : [];
}

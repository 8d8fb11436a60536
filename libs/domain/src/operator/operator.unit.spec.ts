import { describe, expect, it } from 'vitest';
import type { OperatorEvent } from '../events/other-events.js';
import { workerId } from '../ids.js';
import { LogOf } from '../testing/given.js';
import {
  evolveOperator,
  finishAction,
  initialOperator,
  type OperatorState,
  requestAction,
  startAction,
} from './operator.js';

const request = (actionId: string) => ({ actionId, action: 'evict', target: 'r1', by: 'cli' });
const requested = (id: string): OperatorEvent => ({ type: 'OperatorActionRequested', data: request(id) });
const started = (actionId: string): OperatorEvent => ({ type: 'OperatorActionStarted', data: { actionId } });
const finished = (actionId: string, state: 'done' | 'failed' = 'done'): OperatorEvent => ({
  type: 'OperatorActionFinished',
  data: { actionId, state, result: 'evicted' },
});
const fold = (events: readonly OperatorEvent[]): OperatorState => {
  const log = new LogOf<OperatorEvent>('operator-w1');
  for (const event of events) log.add(event);
  return log.recorded.reduce(evolveOperator, initialOperator(workerId('w1')));
};

describe('operator actions', () => {
  it('are followed from the request to the end, with the times of each step', () => {
    const state = fold([requested('a'), started('a'), finished('a')]);
    expect(state.actions.get('a')).toEqual({
      ...request('a'),
      state: 'done',
      requestedAt: '1970-01-01T00:00:00.000Z',
      startedAt: '1970-01-01T00:01:00.000Z',
      finishedAt: '1970-01-01T00:02:00.000Z',
      result: 'evicted',
    });
  });

  it('take each step once: a repeated request, start or end writes nothing and changes nothing', () => {
    const ended = fold([requested('a'), started('a'), finished('a')]);
    expect(requestAction(ended, request('a'))).toEqual([]);
    expect(startAction(ended, 'a')).toEqual([]);
    expect(finishAction(ended, { actionId: 'a', state: 'failed', result: '' })).toEqual([]);
    const again = fold([
      requested('a'),
      started('a'),
      finished('a'),
      finished('a', 'failed'),
      requested('a'),
    ]);
    expect(again.actions).toEqual(ended.actions);
  });

  it('keep every open action and only the last hundred that ended', () => {
    const ids = Array.from({ length: 130 }, (_, n) => `a${n}`);
    const state = fold([requested('open'), ...ids.flatMap((id) => [requested(id), finished(id)])]);
    expect([...state.actions.keys()]).toEqual(['open', ...ids.slice(30)]);
  });
});

import { describe, expect, it } from 'vitest';
import type { HistoryEvent } from '../events/history-events.js';
import { modelKey, workerId } from '../ids.js';
import { placementClassOf } from '../placement-terms.js';
import { aContract, LogOf } from '../testing/given.js';
import { evolveHistory, initialHistory, windowlessKey } from './history.js';

const classAt = (contextTokens: number, build = 'b1') =>
  placementClassOf('F16', aContract({ contextTokens, engine: { kind: 'built-in', build } }));
const roomBytes = [{ deviceId: 'ram', bytes: 100 }];
const limits = [{ deviceId: 'ram', bytes: 900 }];

const refused = (contextTokens: number, failure = 'out-of-memory', build?: string): HistoryEvent => ({
  type: 'LoadRefusedByEngine',
  data: {
    class: classAt(contextTokens, build),
    residentId: 'r',
    failure,
    message: 'no memory',
    seconds: 1,
    roomBytes,
    limits,
  },
});
const loaded = (contextTokens: number): HistoryEvent => ({
  type: 'LoadMeasured',
  data: {
    class: classAt(contextTokens),
    residentId: 'r',
    byDevice: [],
    hostAnonymousBytes: 0,
    hostResidentBytes: 0,
    seconds: 1,
    predictedByDevice: [],
  },
});
const probed = (contextTokens: number, ok: boolean, failure?: string): HistoryEvent => ({
  type: 'ContextProbed',
  data: {
    class: classAt(contextTokens),
    contextTokens,
    ok,
    roomBytes,
    limits,
    ...(failure === undefined ? {} : { failure }),
  },
});

/** The smallest window that is barred after these events, for the class of build b1. */
const barredAfter = (...events: readonly HistoryEvent[]): number | undefined => {
  const log = new LogOf<HistoryEvent>('history-w~a');
  for (const event of events) log.add(event);
  const state = log.recorded.reduce(evolveHistory, initialHistory(workerId('w'), modelKey('a')));
  return state.barred.get(windowlessKey(classAt(0)))?.contextTokens;
};

describe('a refused window is a fact', () => {
  it.each([
    ['a load that lacked memory', [refused(8192)], 8192],
    ['a probe that lacked memory', [probed(8192, false, 'out-of-memory')], 8192],
    ['the smallest of several', [refused(16_384), refused(8192), refused(12_288)], 8192],
    ['until a load at it', [refused(8192), loaded(8192)], undefined],
    ['until a probe above it', [refused(8192), probed(12_288, true)], undefined],
    ['not until a load below it', [refused(8192), loaded(6144)], 8192],
    ['of no other engine build', [refused(8192, 'out-of-memory', 'b2')], undefined],
    ['not by a load that failed for another reason', [refused(8192, 'exited')], undefined],
    ['not by a probe whose engine ended', [probed(8192, false, 'exited')], undefined],
  ] as const)('%s', (_, events, barred) => {
    expect(barredAfter(...events)).toBe(barred);
  });

  it('a failed load leaves what was measured', () => {
    const log = new LogOf<HistoryEvent>('history-w~a').add(loaded(8192)).add(refused(8192));
    const state = log.recorded.reduce(evolveHistory, initialHistory(workerId('w'), modelKey('a')));
    expect([...state.measured.values()]).toHaveLength(1);
  });

  it('keeps the room and the limits that it was refused with', () => {
    const log = new LogOf<HistoryEvent>('history-w~a').add(refused(8192));
    const state = log.recorded.reduce(evolveHistory, initialHistory(workerId('w'), modelKey('a')));
    expect([...state.barred.values()]).toMatchObject([{ reason: 'no memory', roomBytes, limits }]);
  });
});

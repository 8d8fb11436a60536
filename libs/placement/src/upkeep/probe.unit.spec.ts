import { describe, expect, it } from 'vitest';
import { evolveHistory, initialHistory, type PairHistory } from '#domain/history/history.js';
import type { HistoryEvent } from '#domain/events/index.js';
import { modelKey } from '#domain/ids.js';
import { placementClassOf } from '#domain/placement-terms.js';
import { LogOf } from '#domain/testing/given.js';
import { decide } from '../decide.js';
import {
  artifact,
  contract,
  decidedOf,
  geometry,
  input,
  model,
  resident,
  residents,
  WORKER,
  worker,
} from '../testing/factories.js';
import { probesLeft } from './probe.js';

const A = 'tiny/a';
const at = (contextTokens: number) => placementClassOf('F16', contract({ contextTokens }));

const given = (...events: readonly HistoryEvent[]): PairHistory => {
  const log = new LogOf<HistoryEvent>('history-w~a');
  for (const event of events) log.add(event);
  return log.recorded.reduce(evolveHistory, initialHistory(WORKER, modelKey(A)));
};

const loaded = (contextTokens: number): HistoryEvent => ({
  type: 'LoadMeasured',
  data: {
    class: at(contextTokens),
    residentId: 'r',
    byDevice: [],
    hostAnonymousBytes: 0,
    hostResidentBytes: 0,
    seconds: 1,
    predictedByDevice: [],
  },
});
const probed = (contextTokens: number, ok: boolean, over: object = {}): HistoryEvent => ({
  type: 'ContextProbed',
  data: { class: at(contextTokens), contextTokens, ok, roomBytes: [], limits: [], ...over },
});

const left = (history: PairHistory, over: { contextTokens?: number; p99Tokens?: number } = {}) =>
  probesLeft({
    resident: resident(A, { contract: contract({ contextTokens: over.contextTokens ?? 8192 }) }),
    trainedTokens: 32_768,
    history,
    ...(over.p99Tokens === undefined ? {} : { p99Tokens: over.p99Tokens }),
  }).map(({ contextTokens, fills }) => (fills ? `fill ${contextTokens}` : contextTokens));

describe('what is probed', () => {
  it('is one tick below, above and at the default, and what was asked for; the default last, to be filled', () => {
    expect(left(given())).toEqual([6144, 12_288, 'fill 8192']);
    expect(left(given(), { contextTokens: 24_576 })).toEqual([6144, 12_288, 24_576, 'fill 8192']);
    expect(left(given(), { p99Tokens: 13_000 })).toEqual([12_288, 24_576, 8192, 'fill 16384']);
  });

  it.each([
    ['loaded', loaded(6144)],
    ['probed', probed(6144, true)],
    ['refused', probed(6144, false, { failure: 'exited', reason: 'gone' })],
  ] as const)('is not what was %s already', (_, event) => {
    expect(left(given(event))).toEqual([12_288, 'fill 8192']);
  });

  it('is nothing at or above a context that was refused for want of memory', () => {
    expect(left(given(probed(12_288, false, { failure: 'out-of-memory' })))).toEqual([6144, 'fill 8192']);
    expect(left(given(probed(6144, false, { failure: 'out-of-memory' })))).toEqual([]);
  });

  it('is over when each has a result and the default was filled', () => {
    const all = [loaded(6144), loaded(12_288), probed(8192, true)];
    expect(left(given(...all))).toEqual(['fill 8192']);
    expect(left(given(...all, probed(8192, true, { filledTokens: 8180 })))).toEqual([]);
  });
});

describe('a probe', () => {
  it('loads a smaller context than the resident has, in its place, and evicts nobody else', () => {
    const found = model(A, {
      artifacts: [artifact({ geometry: geometry({ trainedContextTokens: 32_768 }) })],
    });
    const { ticket: _none, ...rest } = input(A, {
      model: found,
      queue: [],
      worker: worker({ residents: residents(resident(A), resident('tiny/b')) }),
      ask: { context: { min: 6144, max: 6144 }, kvType: 'f16', slots: 1 },
      cause: { kind: 'probe', contextTokens: 6144 },
    });
    const data = decidedOf(decide(rest));
    expect(data.contract.contextTokens).toBe(6144);
    expect(data.victims.map((victim) => victim.modelKey)).toEqual([A]);
    expect(data.cause).toEqual({ kind: 'probe', contextTokens: 6144 });
  });
});

import { describe, expect, it } from 'vitest';
import type { BerthEvent, HistoryEventData, Recorded } from '../events/index.js';
import { RAM } from '../ids.js';
import { placementClassOf } from '../placement-terms.js';
import { aContract, aDecision, LogOf } from '../testing/given.js';
import { FactsDerivation, RULES_OF_DECISIONS } from './derived-facts.js';

const contract = aContract();
const plan = placementClassOf('Q4', contract);
const measured = (seconds: number, over: Partial<HistoryEventData<'LoadMeasured'>> = {}): BerthEvent => ({
  type: 'LoadMeasured',
  data: {
    class: plan,
    residentId: 'r',
    byDevice: [{ deviceId: RAM, weightsBytes: 1000, kvBytes: 8192, computeBytes: 50, processBytes: 8 }],
    hostAnonymousBytes: 1,
    hostResidentBytes: 1,
    seconds,
    predictedByDevice: [{ deviceId: RAM, bytes: 10_000 }],
    ...over,
  },
});
const derive = (...events: [string, BerthEvent][]) => deriveUnder(RULES_OF_DECISIONS, ...events);
const deriveUnder = (rules: typeof RULES_OF_DECISIONS, ...events: [string, BerthEvent][]) => {
  const derivation = new FactsDerivation(rules);
  const logs = new Map<string, LogOf<BerthEvent>>();
  for (const [stream, event] of events) {
    const log = logs.get(stream) ?? new LogOf<BerthEvent>(stream);
    logs.set(stream, log.add(event, { id: `${stream}:${log.recorded.length}` }));
    derivation.take(log.recorded.at(-1) as Recorded<BerthEvent>);
  }
  return derivation.finish();
};
const history = 'history-w~m';
const decided = (loadSeconds: number, bytes: number): [string, BerthEvent] => [
  'worker-w',
  {
    type: 'PlacementDecided',
    data: aDecision('d', {
      modelKey: 'm' as never,
      artifact: 'Q4',
      contract,
      predicted: { loadSeconds },
      need: [{ deviceId: RAM, term: 'weights', bytes, basis: 'measured', fromEvent: `${history}:0` }],
    }),
  },
];

describe('facts derived from the log', () => {
  it('follow from measurements by the rules of today, each with what it is about', () => {
    const { facts } = derive([history, measured(2)], [history, measured(4)], [history, measured(9)]);
    const of = (rule: string) => facts.find((fact) => fact.rule === rule);
    expect(of('load-seconds')).toMatchObject({ figures: { medianSeconds: 4 }, from: 3 });
    expect(of('memory-by-device')?.figures).toEqual({ ram: 9250 });
    expect(of('kv-bytes-per-token')?.figures).toEqual({ bytesPerToken: 1 });
    expect(of('size-accuracy')?.figures['worstError']).toBeCloseTo(750 / 9250);
  });

  it('agree with a decision that used what the rules give from the events before it', () => {
    const report = derive([history, measured(2)], decided(2, 9250), [history, measured(8)]);
    expect(report).toMatchObject({ decisions: 1, compared: 2, changed: [] });
  });

  it('name each figure of a decision that the rules of today give otherwise', () => {
    const { changed } = derive([history, measured(2)], [history, measured(4)], decided(2, 9000));
    expect(changed.map(({ rule, figure, used, derived }) => [rule, figure, used, derived])).toEqual([
      ['load-seconds', 'seconds', 2, 3],
      ['memory-by-device', 'ram', 9000, 9250],
    ]);
  });

  it('name the decisions that used what a rule gave before it was altered', () => {
    const log: [string, BerthEvent][] = [[history, measured(2)], [history, measured(4)], decided(3, 9250)];
    expect(derive(...log).changed).toEqual([]);
    const slowest: typeof RULES_OF_DECISIONS = {
      ...RULES_OF_DECISIONS,
      'load-seconds': ({ loadSeconds }) => Math.max(...[...loadSeconds.values()].flat()),
    };
    expect(deriveUnder(slowest, ...log).changed).toMatchObject([
      { decisionId: 'd-d', rule: 'load-seconds', used: 3, derived: 4 },
    ]);
  });

  it('compare nothing that a decision did not take from a measurement', () => {
    expect(derive(decided(2, 9000))).toMatchObject({ decisions: 1, compared: 0, changed: [] });
  });
});

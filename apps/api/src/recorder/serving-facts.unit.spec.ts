import { expect, it } from 'vitest';
import { evolveHistory, initialHistory, type PairHistory } from '#domain/history/history.js';
import type { CallEventData, HistoryEvent } from '#domain/events/index.js';
import { callId, modelKey, residentId, workerId } from '#domain/ids.js';
import { aContract, aDecision, aReady, LogOf } from '#domain/testing/given.js';
import { SAMPLES } from '#events/testing/samples.js';
import { resident } from '../../../../libs/placement/src/testing/factories.js';
import { ServingFacts } from './serving-facts.js';

const WORKER = workerId('w');
const KEY = modelKey('a');
const measured = {
  ...aReady('a').measured,
  byDevice: [{ ...aReady('a').measured.byDevice[0]!, kvBytes: 640 }],
};
const there = resident('a', { artifact: aDecision('a').artifact, contract: aContract(), measured });

function stand() {
  let nowMs = 1_000_000;
  const written: HistoryEvent[] = [];
  const log = new LogOf<HistoryEvent>('history-w~a');
  let history: PairHistory = initialHistory(WORKER, KEY);
  const facts = new ServingFacts(
    {
      record: (_stream, fact) => {
        const { event } = typeof fact === 'function' ? fact() : fact;
        written.push(event as HistoryEvent);
        log.add(event as HistoryEvent);
        history = log.recorded.reduce(evolveHistory, initialHistory(WORKER, KEY));
      },
    },
    { resident: () => ({ workerId: WORKER, resident: there }), history: () => history },
    () => nowMs,
  );
  let calls = 0;
  const end = (decodeMs: number, over: Partial<CallEventData<'CallFinished'>> = {}) =>
    facts.ended({
      ...SAMPLES.CallFinished,
      callId: callId(`c${(calls += 1)}`),
      outcome: 'completed',
      residentId: residentId('r-a'),
      workerId: WORKER,
      modelKey: KEY,
      tokens: { prompt: 100, cached: 60, output: 11 },
      timings: { promptMs: 80, decodeMs },
      ...over,
    });
  return { end, written, history: () => history, wait: (ms: number) => void (nowMs += ms) };
}

it('writes what a call measured under the class that served it', () => {
  const { end, written } = stand();
  end(50);
  expect(written).toMatchObject([
    {
      type: 'ServingMeasured',
      data: { tokensHeld: 111, kvBytes: 640, promptMsPerToken: 2, decodeMsPerToken: 5 },
    },
  ]);
});

it('writes nothing of calls that failed, that no engine served, or that were not counted', () => {
  const { end, written } = stand();
  end(50, { outcome: 'failed' });
  end(50, { tokens: {} });
  expect(written).toEqual([]);
});

it('after the first 20 writes only news: once a minute what is off by a tenth, once an hour what is as it was', () => {
  const { end, written, wait, history } = stand();
  for (let n = 0; n < 500; n += 1) end(50);
  expect(written).toHaveLength(20);
  end(80);
  expect(written).toHaveLength(20);
  wait(60_000);
  end(52);
  expect(written).toHaveLength(20);
  end(80);
  expect(written).toHaveLength(21);
  wait(3_600_000);
  end(50);
  expect(written).toHaveLength(22);
  expect([...history().serving.values()].map((figures) => figures.length)).toEqual([20]);
});

import { describe, expect, it } from 'vitest';
import { type CallId, callId, modelKey } from '#domain/ids.js';
import type { Ticket } from './contract.js';
import { etaSeconds, outputSeconds, predict, type Prediction } from './predict.js';
import { orderQueue } from './queue.js';
import { defaultSettings } from './setting-levels.js';
import {
  calls,
  contract,
  measuredHistory,
  NOW_MS,
  ramBytes,
  resident,
  residents,
  ticket,
  worker,
} from './testing/factories.js';

const finished = (promptMsPerToken: number, decodeMsPerToken: number, outputTokens: number) => [
  { receivedAtMs: 0, promptTokens: 500, promptMsPerToken, decodeMsPerToken, outputTokens },
];
const historyA = calls('A', { finished: finished(0.8, 25, 200) });
const historyB = calls('B', { finished: finished(0, 10, 200) });
const view = {
  worker: worker({ residents: residents(resident('A')) }),
  histories: new Map([[modelKey('B'), measuredHistory('B', contract(), [ramBytes(1)], { seconds: 40 })]]),
  calls: new Map([
    [modelKey('A'), historyA],
    [modelKey('B'), historyB],
  ]),
  activity: new Map(),
  nowMs: NOW_MS,
};
const b = ticket('B', { arrival: 1 });
const a = ticket('A', { arrival: 2, promptTokens: 500 });
const order = (tickets: readonly Ticket[], queueOrder: 'eta' | 'fifo' | 'smart' = 'eta', nowMs = NOW_MS) => {
  const predictions = new Map<CallId, Prediction>(tickets.map((t) => [t.callId, predict(t, view)]));
  return orderQueue(tickets, predictions, nowMs, { ...defaultSettings, queueOrder }).map((t) =>
    t.callId.replace('call-to-', ''),
  );
};

describe('predictions', () => {
  it('A resident, 500 prompt tokens at 0.8 ms and 200 out at 25 ms, takes 5.4 s', () => {
    expect(etaSeconds(predict(a, view))).toBeCloseTo(5.4, 9);
  });
  it('B cold, load 40 s and 2 s of output, takes 42 s', () => {
    expect(etaSeconds(predict(b, view))).toBeCloseTo(42, 9);
  });
  it('max_tokens 50 with a median output of 200 is priced at 50', () => {
    const rates = { decodeMsPerToken: 25, outputTokens: 200 };
    expect(outputSeconds(rates, { promptTokens: 0, maxTokens: 50 })).toBe(1.25);
    expect(outputSeconds(rates, { promptTokens: 0, maxTokens: 500 })).toBe(5);
  });
  it('a resident whose slots are taken is ready when one frees', () => {
    const busy = {
      ...view,
      activity: new Map([[resident('A').residentId, { callsInFlight: 1, freeInSeconds: 3 }]]),
    };
    expect(predict(a, busy)).toMatchObject({ readyInSeconds: 3, loadSeconds: 0, resident: true });
  });
  it('calls for a model that is loading share what remains of the load', () => {
    const loading = resident('B', {
      phase: 'loading',
      loadStartedAt: new Date(NOW_MS - 10_000).toISOString(),
    });
    expect(predict(b, { ...view, worker: worker({ residents: residents(loading) }) })).toMatchObject({
      loadSeconds: 30,
      resident: false,
    });
  });
});

describe('the eta order (table of the rules)', () => {
  it('puts the resident A before the cold B, though B came first', () => {
    expect(order([b, a])).toEqual(['A', 'B']);
  });
  it('puts B first when it has waited 60 s', () => {
    expect(order([{ ...b, arrivedAtMs: NOW_MS - 60_000 }, a])).toEqual(['B', 'A']);
  });
  it('lets C without history keep the first place that it came in', () => {
    expect(order([ticket('C', { arrival: 0 }), b, a])).toEqual(['C', 'A', 'B']);
  });
  it('puts foreground before background, which never ages into it', () => {
    const old = { ...a, background: true, arrivedAtMs: NOW_MS - 1e6 };
    expect(order([old, b])).toEqual(['B', 'A']);
  });
  it('keeps the order of a group', () => {
    expect(
      order([
        { ...b, group: 'g' },
        { ...a, group: 'g' },
      ]),
    ).toEqual(['B', 'A']);
  });
  it('bounds overtaking by 0.1 s per place', () => {
    const late = { ...a, arrival: 1 + 367 };
    expect(order([b, late])).toEqual(['B', 'A']);
    expect(order([b, { ...late, arrival: 1 + 365 }])).toEqual(['A', 'B']);
  });
});

describe('the other orders', () => {
  it('fifo keeps the order of arrival', () => {
    expect(order([a, b], 'fifo')).toEqual(['B', 'A']);
  });
  it('smart lets a call to a resident pass a head that waits for room, for 30 s', () => {
    expect(order([b, a], 'smart')).toEqual(['A', 'B']);
    expect(order([{ ...b, arrivedAtMs: NOW_MS - 30_000 }, a], 'smart')).toEqual(['B', 'A']);
  });
  it('smart keeps the order of a group', () => {
    expect(
      order(
        [
          { ...b, group: 'g' },
          { ...a, group: 'g' },
        ],
        'smart',
      ),
    ).toEqual(['B', 'A']);
  });
  it('uses each call once', () => {
    const same = [
      ticket('C', { arrival: 1 }),
      { ...ticket('C', { arrival: 2 }), callId: callId('call-to-C2') },
    ];
    expect(order(same)).toEqual(['C', 'C2']);
  });
});

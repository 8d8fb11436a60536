import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CallEvent, CALL_OUTCOMES, type CallStamps } from '../events/call-events.js';
import { apiId, callId, modelKey } from '../ids.js';
import {
  bytesPerToken,
  decodeMsPerToken,
  evolveCalls,
  foldCalls,
  initialCalls,
  waitSecondsOf,
} from './call-history.js';

const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
const stamps = (seconds: Partial<Record<keyof CallStamps, number>>): CallStamps => ({
  receivedAt: at(0),
  finishedAt: at(100),
  ...Object.fromEntries(Object.entries(seconds).map(([name, value]) => [name, at(value)])),
});

describe('what a call waited beyond the load of its model', () => {
  it.each([
    ['nothing, for one that came straight through', { forwardedAt: 0 }, 0],
    ['its time in the queue, for one that waited for a slot', { queuedAt: 0, forwardedAt: 7 }, 7],
    ['all but the load', { queuedAt: 0, decidedAt: 4, readyAt: 44, forwardedAt: 45 }, 5],
    [
      'all of it, for one that waited and found its model there',
      { queuedAt: 1, decidedAt: 4, forwardedAt: 9 },
      8,
    ],
    ['unknown, for one that reached no engine', { queuedAt: 0, decidedAt: 4, readyAt: 44 }, undefined],
  ] as const)('%s', (_, given, seconds) => {
    expect(waitSecondsOf(stamps(given))).toBe(seconds);
  });
});

const KEY = modelKey('one');
const IDS = {
  callId: callId('0190a0a0-0000-7000-8000-000000000001'),
  apiId: apiId('0190a0a0-0000-7000-8000-000000000002'),
  modelKey: KEY,
};
const anyTime = fc.integer({ min: 0, max: 2_000_000_000_000 }).map((ms) => new Date(ms).toISOString());

const event: fc.Arbitrary<CallEvent> = fc.oneof(
  fc.tuple(anyTime, fc.option(fc.nat(99))).map(([receivedAt, seconds]): CallEvent => {
    const more = seconds === null ? {} : { idleUnloadSeconds: seconds };
    const data = {
      ...more,
      endpoint: '/v1/chat/completions',
      background: false,
      stream: false,
      promptBytes: 9,
    };
    return { type: 'CallStarted', data: { ...IDS, ...data, receivedAt } };
  }),
  fc
    .record({
      outcome: fc.constantFrom(...CALL_OUTCOMES),
      receivedAt: anyTime,
      output: fc.nat(500),
      prompt: fc.nat(500),
      decodeMs: fc.nat(5000),
    })
    .map(({ outcome, receivedAt, output, prompt, decodeMs }): CallEvent => {
      const tokens = { prompt, output };
      const stamps = { receivedAt, finishedAt: receivedAt };
      const timings = { promptMs: 7, decodeMs };
      const data = { outcome, status: 200, attempts: 1, bytesOut: 1, stamps, tokens, timings };
      return { type: 'CallFinished', data: { ...IDS, ...data } };
    }),
);

it('says of many events at once what it says of them one by one', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 300 }), fc.nat(300), (events, cut) => {
      const single = events.reduce(
        (state, each, revision) =>
          evolveCalls(state, {
            event: each,
            id: `event-${revision}`,
            stream: '',
            revision,
            position: { commit: 0n, prepare: 0n },
            metadata: { $correlationId: '', $causationId: '', at: '', by: '', schemaVersion: 1 },
          }),
        initialCalls(KEY),
      );
      const parts = [events.slice(0, cut), events.slice(cut)];
      expect({ ...parts.reduce(foldCalls, initialCalls(KEY)), seen: single.seen }).toEqual(single);
    }),
    { numRuns: 50 },
  );
});

describe('the bytes of text that make a token', () => {
  it('are the median of the last 20 calls whose prompt was text and was counted', () => {
    const call = (promptBytes: number | undefined, promptTokens?: number) => ({
      receivedAtMs: 0,
      ...(promptBytes === undefined ? {} : { promptBytes }),
      ...(promptTokens === undefined ? {} : { promptTokens }),
    });
    const of = (...finished: ReturnType<typeof call>[]) => bytesPerToken({ ...initialCalls(KEY), finished });
    expect(of()).toBeUndefined();
    expect(of(call(40), call(undefined, 10))).toBeUndefined();
    expect(of(call(20, 10), call(30, 10), call(100, 10), call(undefined, 10))).toBe(3);
  });
});

describe('the decode rate of a call', () => {
  it.each([
    ['is over the tokens after the first', 21, 1000, 50],
    ['is there from two tokens on', 2, 40, 40],
    ['is none for one token', 1, 40, undefined],
    ['is none for no token', 0, 40, undefined],
    ['is used at 5,000 tokens a second', 5001, 1000, 0.2],
    ['is a bad reading above that', 5002, 1000, undefined],
    ['is a bad reading when it took no time', 20, 0, undefined],
    ['is unknown without the tokens', undefined, 40, undefined],
    ['is unknown without the time', 20, undefined, undefined],
  ])('%s', (_, output, decodeMs, msPerToken) => {
    expect(decodeMsPerToken(output, decodeMs)).toBe(msPerToken);
  });

  it('that is a bad reading does not enter the history', () => {
    const ended = (output: number, decodeMs: number): CallEvent => ({
      type: 'CallFinished',
      data: {
        ...IDS,
        outcome: 'completed',
        status: 200,
        attempts: 1,
        stamps: stamps({}),
        tokens: { output },
        timings: { decodeMs },
        bytesOut: 1,
      },
    });
    const { finished } = foldCalls(initialCalls(KEY), [ended(21, 1000), ended(1, 5), ended(9000, 10)]);
    expect(finished.map((call) => call.decodeMsPerToken)).toEqual([50, undefined, undefined]);
  });
});

import { describe, expect, it } from 'vitest';
import { evolveCalls, initialCalls } from '#domain/calls/call-history.js';
import type { CallEvent, WorkerEvent } from '#domain/events/index.js';
import { apiId, callId, modelKey, residentId, workerId } from '#domain/ids.js';
import { aDecision, aLoadStarted, aReady, LogOf } from '#domain/testing/given.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import type { WorkerState } from '#domain/worker/state.js';
import { defaultSettings } from '../setting-levels.js';
import { idleTooLong, type IdleQuestion } from './idle.js';

const KEY = modelKey('a');
const READY_MS = 120_000;

/** A resident that is ready since minute 2 of its log. */
function given(...more: readonly WorkerEvent[]): WorkerState {
  const log = new LogOf<WorkerEvent>('worker-w')
    .add({ type: 'PlacementDecided', data: aDecision('a') })
    .add({ type: 'LoadStarted', data: aLoadStarted('a') })
    .add({ type: 'ResidentReady', data: aReady('a') });
  for (const event of more) log.add(event);
  return log.recorded.reduce(evolveWorker, initialWorker(workerId('w')));
}

const callsOf = (...events: readonly CallEvent[]) => {
  const log = new LogOf<CallEvent>('calls-a');
  for (const event of events) log.add(event);
  return log.recorded.reduce(evolveCalls, initialCalls(KEY));
};

const iso = (ms: number): string => new Date(ms).toISOString();
const started = (atMs: number, idleUnloadSeconds?: number): CallEvent => ({
  type: 'CallStarted',
  data: {
    callId: callId(`c-${atMs}`),
    apiId: apiId('api'),
    modelKey: KEY,
    endpoint: '/v1/chat/completions',
    background: false,
    stream: false,
    promptBytes: 4,
    receivedAt: iso(atMs),
    ...(idleUnloadSeconds === undefined ? {} : { idleUnloadSeconds }),
  },
});
const finished = (atMs: number, endMs: number): CallEvent => ({
  type: 'CallFinished',
  data: {
    callId: callId(`c-${atMs}`),
    apiId: apiId('api'),
    modelKey: KEY,
    outcome: 'failed',
    status: 502,
    attempts: 1,
    stamps: { receivedAt: iso(atMs), finishedAt: iso(endMs) },
    tokens: {},
    timings: {},
    bytesOut: 0,
  },
});

const ask = (
  over: Omit<Partial<IdleQuestion>, 'worker'> & { readonly seconds?: number; readonly worker?: WorkerState },
) => {
  const { seconds, worker = given(), ...rest } = over;
  const resident = worker.residents.get(residentId('r-a'));
  if (!resident) throw new Error('no resident');
  return idleTooLong({
    worker,
    resident,
    settings: { ...defaultSettings, ...(seconds === undefined ? {} : { idleUnloadSeconds: seconds }) },
    preloaded: false,
    calls: callsOf(),
    callsInFlight: 0,
    waiting: 0,
    nowMs: READY_MS,
    ...rest,
  });
};

describe('an idle resident', () => {
  it('stays for ever when nobody says how long it may be idle', () => {
    expect(ask({ nowMs: READY_MS + 1e9 })).toBeUndefined();
  });

  it('goes once it has been idle for as long as the settings say, and not a moment before', () => {
    expect(ask({ seconds: 300, nowMs: READY_MS + 299_999 })).toBeUndefined();
    expect(ask({ seconds: 300, nowMs: READY_MS + 300_000 })).toEqual({
      idleSeconds: 300,
      idleUnloadSeconds: 300,
      saidBy: 'settings',
    });
  });

  it.each([
    ['a call is on it', { callsInFlight: 1 }],
    ['a call waits for its model', { waiting: 1 }],
    ['its worker keeps it loaded', { preloaded: true }],
    ['its settings pin it', { settings: { ...defaultSettings, idleUnloadSeconds: 1, pinned: true } }],
    [
      'it is pinned on its worker',
      { worker: given({ type: 'PinSet', data: { modelKey: KEY, pinned: true, by: 'x' } }) },
    ],
    [
      'it is leaving already',
      {
        worker: given({
          type: 'EvictionStarted',
          data: { residentId: residentId('r-a'), reason: 'operator' },
        }),
      },
    ],
  ] as const)('stays while %s', (_, over) => {
    expect(ask({ seconds: 1, nowMs: READY_MS + 1e6 })).toBeDefined();
    expect(ask({ seconds: 1, nowMs: READY_MS + 1e6, ...over })).toBeUndefined();
  });

  it.each([
    ['it became ready', {}, READY_MS],
    ['its last call ended here', { lastCallEndedAtMs: READY_MS + 7000 }, READY_MS + 7000],
    [
      'a call of another api ended',
      { calls: callsOf(started(READY_MS, undefined), finished(READY_MS, READY_MS + 9000)) },
      READY_MS + 9000,
    ],
    ['a call of another api came', { calls: callsOf(started(READY_MS + 8000)) }, READY_MS + 8000],
  ] as const)('is idle since %s', (_, over, sinceMs) => {
    expect(ask({ seconds: 60, nowMs: sinceMs + 60_000, ...over })?.idleSeconds).toBe(60);
    expect(ask({ seconds: 60, nowMs: sinceMs + 59_999, ...over })).toBeUndefined();
  });
});

describe('a call that says how long its model is kept', () => {
  const at = READY_MS + 1000;

  it('wins over the settings, in both directions', () => {
    const atOnce = ask({ seconds: 300, calls: callsOf(started(at, 0), finished(at, at + 5)), nowMs: at + 5 });
    expect(atOnce).toEqual({
      idleSeconds: 0,
      idleUnloadSeconds: 0,
      saidBy: 'call',
      callId: callId(`c-${at}`),
    });
    const kept = callsOf(started(at, 3.15e8), finished(at, at + 5));
    expect(ask({ seconds: 1, calls: kept, nowMs: at + 1e8 })).toBeUndefined();
  });

  it('holds until the next call, which may say nothing', () => {
    const calls = callsOf(started(at, 0), finished(at, at + 5), started(at + 10), finished(at + 10, at + 20));
    expect(ask({ calls, nowMs: at + 1e8 })).toBeUndefined();
    expect(ask({ calls, seconds: 60, nowMs: at + 60_020 })?.saidBy).toBe('settings');
  });

  it('counts though the log does not have it yet, unless another came after it', () => {
    const own = { beganAtMs: at, keepAlive: { callId: callId('own'), seconds: 0 } };
    const ended = { lastCallEndedAtMs: at + 5, nowMs: at + 5 };
    expect(ask({ lastCall: own, ...ended })?.callId).toBe('own');
    expect(ask({ lastCall: own, ...ended, calls: callsOf(started(at + 1)) })).toBeUndefined();
    expect(
      ask({ lastCall: { beganAtMs: at }, ...ended, calls: callsOf(started(at - 1, 0)) }),
    ).toBeUndefined();
  });
});

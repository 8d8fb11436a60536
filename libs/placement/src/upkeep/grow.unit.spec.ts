import { describe, expect, it } from 'vitest';
import type { CallHistory } from '#domain/calls/call-history.js';
import { MIB } from '#domain/units.js';
import { termsByDevice } from '../charges.js';
import { decide } from '../decide.js';
import { defaultSettings } from '../setting-levels.js';
import {
  ask,
  artifact,
  calls,
  geometry,
  input,
  isoBefore,
  model,
  NOW_MS,
  resident,
  residents,
  worker,
} from '../testing/factories.js';
import { growBack, type GrowQuestion } from './grow.js';

const A = 'tiny/a';
const TRAINED = 32_768;
const found = model(A, { artifacts: [artifact({ geometry: geometry({ trainedContextTokens: TRAINED }) })] });
const there = (over: Parameters<typeof resident>[1] = {}) => resident(A, { bytes: 100 * MIB, ...over });

const planner = (state = worker({ residents: residents(there()) })) =>
  ((tokens: number) => {
    const { ticket: _none, ...rest } = input(A);
    const outcome = decide({
      ...rest,
      worker: state,
      model: found,
      queue: [],
      ask: ask({ context: { min: tokens, max: tokens } }),
      cause: { kind: 'grow', fromTokens: 8192, wantedTokens: tokens },
    });
    return outcome.kind === 'decided' ? outcome.data : undefined;
  }) satisfies GrowQuestion['planAt'];

/** Bytes that the model needs at so many tokens. */
const needAt = (tokens: number): number =>
  [...termsByDevice(planner()(tokens)?.need ?? []).values()].reduce((sum, bytes) => sum + bytes, 0);

const kvAt = (tokens: number): number =>
  (planner()(tokens)?.need ?? []).reduce((sum, { term, bytes = 0 }) => sum + (term === 'kv' ? bytes : 0), 0);

const wanting = (tokens: number, secondsAgo = 1000): CallHistory =>
  calls(A, { wanted: [{ atMs: NOW_MS - secondsAgo * 1000, tokens }] });

const growing = (over: Partial<GrowQuestion> = {}) =>
  growBack({
    resident: there(),
    trainedTokens: TRAINED,
    ask: ask(),
    settings: defaultSettings,
    calls: wanting(14_000),
    callsInFlight: 0,
    waiting: 0,
    planAt: planner(),
    roomSinceMs: NOW_MS - 60_000,
    nowMs: NOW_MS,
    ...over,
  });

describe('growing back', () => {
  it('reloads a resident with the smallest context that covers what a call wanted, when all five hold', () => {
    const verdict = growing();
    expect(verdict).toMatchObject({ grows: true, wantedTokens: 14_000 });
    expect(verdict.plan?.contract.contextTokens).toBe(16_384);
    expect(verdict.plan?.victims.map((victim) => victim.residentId)).toEqual([there().residentId]);
  });

  it.each([
    ['1 it is not below its largest context', { trainedTokens: 8192 }, 'no larger context has room'],
    ['2 no call wanted more', { calls: wanting(8192) }, 'no call wanted more'],
    ['2 the call that did came before it', { calls: wanting(14_000, 4000) }, 'no call wanted more'],
    ['3 there is room for 59 s', { roomSinceMs: NOW_MS - 59_000 }, 'there is room since 59 s'],
    [
      '4 it was loaded 599 s ago',
      { resident: there({ readyAt: isoBefore(599) }) },
      'it was loaded 599 s ago',
    ],
    ['5 a call is on it', { callsInFlight: 1 }, 'it is not idle'],
    ['5 a call waits for it', { waiting: 1 }, 'it is not idle'],
    ['its context is pinned', { ask: ask({ context: 8192 }) }, 'its context is pinned'],
    [
      'it is leaving',
      { resident: there({ leaving: { reason: 'room', started: false, sinceRevision: 1 } }) },
      'it is not there to stay',
    ],
  ] as const)('leaves it as it is when %s', (_, over, why) => {
    const verdict = growing(over);
    expect(verdict.grows).toBe(false);
    expect(verdict.why).toContain(why);
  });

  it('wants a margin of one tick, and takes the largest context that has it', () => {
    const withRoom = (bytes: number) =>
      growing({ planAt: planner(worker({ residents: residents(there()), ramMax: bytes })) });
    expect(withRoom(needAt(24_576)).plan?.contract.contextTokens).toBe(16_384);
    expect(withRoom(needAt(24_576) - 1).plan?.contract.contextTokens).toBe(12_288);
    expect(withRoom(needAt(16_384) - 1)).toMatchObject({
      grows: false,
      why: 'no larger context has room with a margin of one tick',
    });
  });

  it('above the last tick the margin is what its cache took for the last step', () => {
    const step = (kvAt(TRAINED) * 8192) / TRAINED;
    const withRoom = (bytes: number) =>
      growing({
        calls: wanting(30_000),
        planAt: planner(worker({ residents: residents(there()), ramMax: bytes })),
      }).plan?.contract.contextTokens;
    expect(withRoom(needAt(TRAINED) + step)).toBe(TRAINED);
    expect(withRoom(needAt(TRAINED) + step - 1)).toBe(24_576);
  });

  it('never evicts another for it', () => {
    const other = resident('tiny/b', { bytes: 200 * MIB });
    const state = worker({ residents: residents(there(), other), ramMax: needAt(12_288) + 200 * MIB });
    expect(growing({ planAt: planner(state) }).grows).toBe(false);
  });

  it('takes an answer that ended where the context did as a wish for more', () => {
    const full = calls(A, {
      finished: [{ receivedAtMs: NOW_MS - 1000, promptTokens: 8000, outputTokens: 192 }],
    });
    expect(growing({ calls: full })).toMatchObject({ grows: true, wantedTokens: 8193 });
    expect(growing({ calls: full }).plan?.contract.contextTokens).toBe(12_288);
  });

  it('stays within the largest context that the settings allow', () => {
    const within = growing({ ask: ask({ context: { min: 4096, max: 12_288 } }) });
    expect(within.plan?.contract.contextTokens).toBe(12_288);
  });

  it('waits as long as the settings say', () => {
    const settings = { growRoomSeconds: 0, growEverySeconds: 1 };
    const young = there({ readyAt: isoBefore(2), decidedAt: isoBefore(2000) });
    expect(growing({ settings, resident: young, roomSinceMs: NOW_MS }).grows).toBe(true);
  });
});

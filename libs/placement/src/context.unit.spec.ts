import { describe, expect, it } from 'vitest';
import type { BarredWindow } from '#domain/history/history.js';
import { RAM } from '#domain/ids.js';
import { askOf } from './ask.js';
import { chooseContext, contextTicks, feasibleContexts, isBarred, p99TokensHeld } from './context.js';
import { type Room, roomOf } from './room.js';
import { defaultSettings } from './setting-levels.js';
import { worker } from './testing/factories.js';

describe('contexts', () => {
  it('are 4,096 · 2^k, 3 · 2,048 · 2^k and trained', () => {
    expect(contextTicks(40_960)).toEqual([4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 40_960]);
    expect(contextTicks(2048)).toEqual([2048]);
    expect(contextTicks(4096)).toEqual([4096]);
  });
  it('are a range, a point or infeasible by how many fit', () => {
    const ticks = contextTicks(16_384);
    expect(feasibleContexts(ticks, () => true).state).toBe('range');
    expect(feasibleContexts(ticks, (t) => t === 4096)).toEqual({ state: 'point', ticks: [4096] });
    expect(feasibleContexts(ticks, () => false).state).toBe('infeasible');
  });
  it('auto covers the p99 of the tokens held over the last 20 calls', () => {
    const held = (n: number) => ({ receivedAtMs: 0, promptTokens: n, outputTokens: 1 });
    expect(p99TokensHeld([held(10), held(30_000), held(20)])).toBe(30_001);
    const question = {
      ask: 'auto' as const,
      trainedTokens: 65_536,
      callTokens: 10,
      p99Tokens: 30_001,
    };
    expect(chooseContext(question)[0]).toBe(32_768);
  });
  it('stay within a range that was asked, and never below what they replace', () => {
    const base = { trainedTokens: 65_536, callTokens: 10 };
    expect(chooseContext({ ...base, ask: { min: 5000, max: 7000 } })).toEqual([7000, 6144, 5000]);
    expect(chooseContext({ ...base, ask: 'auto', replacedTokens: 24_576 })[0]).toBe(24_576);
    expect(chooseContext({ ...base, ask: 777 })).toEqual([777]);
  });
  it('low is 4,096, medium a quarter of trained and high trained, never below the floor or above trained', () => {
    const preset = (context: 'low' | 'medium' | 'high', trained: number) =>
      askOf({ ...defaultSettings, context }, undefined, trained).context;
    expect([preset('low', 32_768), preset('medium', 32_768), preset('high', 32_768)]).toEqual([
      4096, 8192, 32_768,
    ]);
    expect([preset('low', 2048), preset('medium', 2048), preset('high', 2048)]).toEqual([2048, 2048, 2048]);
    expect(preset('medium', 8192)).toBe(4096);
  });
  it('auto wants 8,192 or trained, and goes down in ticks when that cannot be had', () => {
    const question = { ask: 'auto' as const, callTokens: 10 };
    expect(chooseContext({ ...question, trainedTokens: 65_536 })).toEqual([8192, 6144, 4096]);
    expect(chooseContext({ ...question, trainedTokens: 2048 })).toEqual([2048]);
  });
  it('beyond a refused window are barred while no device has more room and the limits are as they were', () => {
    const refused: BarredWindow = {
      contextTokens: 8192,
      reason: 'no memory',
      roomBytes: [{ deviceId: RAM, bytes: 100 }],
      eventId: 'e',
    };
    const room = (roomBytes: number | undefined) => [
      {
        ...roomOf(worker(), RAM),
        ...(roomBytes === undefined ? { roomBytes: undefined } : { roomBytes }),
      } as Room,
    ];
    expect(isBarred(refused, 8192, room(100))).toBe(true);
    expect(isBarred(refused, 12_288, room(90))).toBe(true);
    expect(isBarred(refused, 6144, room(90))).toBe(false);
    expect(isBarred(refused, 8192, room(101))).toBe(false);
    expect(isBarred(refused, 8192, room(undefined))).toBe(true);
    expect(isBarred(undefined, 8192, room(100))).toBe(false);
    const limitBytes = room(100)[0]?.limitBytes ?? 0;
    const under = (bytes: number) => ({ ...refused, limits: [{ deviceId: RAM, bytes }] });
    expect(isBarred(under(limitBytes), 8192, room(100))).toBe(true);
    expect(isBarred(under(limitBytes - 1), 8192, room(100))).toBe(false);
  });
});

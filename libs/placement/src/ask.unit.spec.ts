import { describe, expect, it } from 'vitest';
import { approvedArtifacts, askOf, whyNotReusable } from './ask.js';
import { defaultSettings } from './setting-levels.js';
import { artifact, ask, contract, resident } from './testing/factories.js';

describe('the ask', () => {
  it('holds what an engine is started with, and no goal or wait', () => {
    expect(askOf({ ...defaultSettings, goal: 'fast', context: 'medium' }, undefined, 32_768)).toEqual({
      context: 8192,
      kvType: 'f16',
      slots: 1,
    });
    expect(askOf({ ...defaultSettings, context: 'high' }, undefined, 32_768).context).toBe(32_768);
    expect(askOf({ ...defaultSettings, context: 'low' }, undefined, 2048).context).toBe(2048);
  });
  it.each([
    [{ kvType: 'q8_0' as const }, /KV cache is f16/],
    [{ slots: 2 }, /has 1 slots/],
    [{ context: 16_384 }, /context is 8192/],
    [{ allowedRungs: ['gpu-only' as const] }, /placed ram-only/],
    [{ gpuLayers: 3 }, /pinned are 3/],
  ])('%o is not satisfied by a resident without it', (over, why) => {
    const question = { ask: ask(over), approved: [artifact()], callTokens: 0, largestTokens: 32_768 };
    expect(whyNotReusable(resident('a'), question)).toMatch(why);
  });
  it('is satisfied by more than it asks', () => {
    const roomy = resident('a', { contract: contract({ contextTokens: 16_384, slots: 4 }) });
    expect(
      whyNotReusable(roomy, {
        ask: ask({ context: 8192 }),
        approved: [artifact()],
        callTokens: 9000,
        largestTokens: 32_768,
      }),
    ).toBeUndefined();
  });
  it('approves artifacts within the ceiling, the selected one first', () => {
    const all = ['F16', 'Q8_0', 'Q4_0'].map((label) => artifact({ label }));
    const labels = (over: object, label?: string) =>
      approvedArtifacts(all, { ...defaultSettings, ...over }, label ? { artifact: label } : {}).map(
        (a) => a.label,
      );
    expect(labels({})).toEqual(['F16', 'Q8_0', 'Q4_0']);
    expect(labels({ quantCeiling: 'off' })).toEqual(['F16']);
    expect(labels({ quantCeiling: ['q8_0', 'Q4_0'] })).toEqual(['Q8_0', 'Q4_0']);
    expect(labels({ alternatives: ['Q4_0', 'nope'] })).toEqual(['F16', 'Q4_0']);
    expect(labels({}, 'q4_0')).toEqual(['Q4_0']);
  });
});

import { describe, expect, it } from 'vitest';
import { approvedArtifacts, askOf, whyNotReusable } from './ask.js';
import { chooseContext, contextTicks, feasibleContexts, p99TokensHeld } from './context.js';
import { claimCores, worthwhileCores } from './cores.js';
import { backOffSeconds } from './failures.js';
import { parseModelName } from './model-name.js';
import { defaultSettings, effectiveSettings, withoutPins } from './setting-levels.js';
import { artifact, ask, contract, resident, worker } from './testing/factories.js';
import { chooseWorker } from './workers.js';

describe('settings', () => {
  it('lie over one another key by key, weakest first, and say where each value came from', () => {
    const { settings, from } = effectiveSettings({
      fleet: { goal: 'fast', parallel: 2 },
      worker: { parallel: 3 },
      pair: { gpuLayers: 4 },
      call: { kvType: 'q8_0' },
    });
    expect(settings).toMatchObject({
      goal: 'fast',
      parallel: 3,
      gpuLayers: 4,
      kvType: 'q8_0',
      maxWaitSeconds: 600,
    });
    expect(from).toMatchObject({
      goal: 'fleet',
      parallel: 'worker',
      gpuLayers: 'pair',
      kvType: 'call',
      maxWaitSeconds: 'default',
    });
    expect(from.latencyTargetSeconds).toBeUndefined();
  });
  it('without pins leave the ladder whole', () => {
    expect(withoutPins({ gpuLayers: 1, cpuMoeLayers: 1, gpuBytes: 1, ramBytes: 1, parallel: 2 })).toEqual({
      parallel: 2,
    });
  });
});

describe('options in the name of a model', () => {
  it('are taken off and read', () => {
    expect(parseModelName('owner/repo@ctx=8192,kv=q8_0@ram')).toEqual({
      ok: true,
      value: {
        name: 'owner/repo',
        options: { fit: false, settings: { context: 8192, kvType: 'q8_0', allowedRungs: ['ram-only'] } },
      },
    });
    expect(parseModelName('m@fit,quant=Q4_K_M')).toMatchObject({
      value: { options: { fit: true, artifact: 'Q4_K_M' } },
    });
    expect(parseModelName('llama3:8b')).toMatchObject({
      value: { name: 'llama3:8b', options: { settings: {} } },
    });
  });
  it.each([
    'm@nope',
    'm@ctx=many',
    'm@ctx',
    'm@ctx=0',
    'm@kv=f32',
    'm@quant=',
    'm@',
    '@ram',
    'm@gpu=1',
    'm@constructor',
    'm@ctx=1,ctx=2',
    'm@kv=f16@kv=f16',
    'm@quant=A,quant=B',
  ])('%s is a 400 that lists the known ones', (name) => {
    const result = parseModelName(name);
    expect(result).toMatchObject({ ok: false, error: { code: 'invalid_request', param: 'model' } });
    expect(!result.ok && result.error.message).toContain('@ctx=N');
  });
});

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
});

describe('cores', () => {
  const none = {};
  it('with nothing in RAM are a quarter of the machine', () => {
    const big = worker({ physicalCores: 16 });
    expect(claimCores(big, { usable: 15, free: 15 }, false, none)).toMatchObject({ threads: 4 });
  });
  it('with a curve are the smallest count beyond which it gains less than 3 %', () => {
    expect(worthwhileCores([10, 19, 27, 27.5, 27.6])).toBe(3);
    const big = worker({ physicalCores: 16 });
    expect(claimCores(big, { usable: 15, free: 15 }, true, none, [10, 19, 27, 27.5])).toMatchObject({
      threads: 3,
    });
    expect(
      claimCores(big, { usable: 15, free: 15 }, true, { cpuPriority: 2 }, [10, 19, 27, 27.5]),
    ).toMatchObject({ threads: 5 });
  });
  it('must reach half of the curve, or the floor that is set', () => {
    const big = worker({ physicalCores: 16 });
    expect(claimCores(big, { usable: 15, free: 1 }, true, none, [10, 19, 27, 27.5])).toMatchObject({
      ok: false,
    });
    expect(claimCores(big, { usable: 15, free: 3 }, true, { cpuFloorCores: 4 })).toMatchObject({ ok: false });
  });
  it('are pinned by a list or a count, also when they are busy', () => {
    expect(claimCores(worker(), { usable: 3, free: 0 }, true, { cpuCores: [2, 3] })).toMatchObject({
      threads: 2,
      cores: [2, 3],
    });
    expect(claimCores(worker(), { usable: 3, free: 0 }, true, { cpuCores: 2 })).toMatchObject({ threads: 2 });
  });
});

it('the back-off doubles from 30 s to 600 s', () => {
  expect([1, 2, 3, 5, 6, 60].map(backOffSeconds)).toEqual([30, 60, 120, 480, 600, 600]);
});

it('the worker is the fastest, then the least displaced, then the first by name', () => {
  const offer = (name: string, displaced: number, seconds?: number) => ({
    name,
    displaced,
    ...(seconds === undefined ? {} : { seconds }),
  });
  expect(chooseWorker([offer('b', 0, 9), offer('a', 3, 5)])?.name).toBe('a');
  expect(chooseWorker([offer('b', 0, 5), offer('a', 3, 5)])?.name).toBe('b');
  expect(chooseWorker([offer('b', 0), offer('a', 0)])?.name).toBe('a');
  expect(chooseWorker([offer('a', 0), offer('b', 9, 100)])?.name).toBe('b');
});

import { describe, expect, it } from 'vitest';
import { parseModelName } from './model-name.js';
import { effectiveSettings, withoutPins } from './setting-levels.js';

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

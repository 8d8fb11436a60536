import { describe, expect, it } from 'vitest';
import { ERROR_CODES } from '#domain/errors.js';
import { deviceId, RAM } from '#domain/ids.js';
import {
  classKey,
  type PlacementClass,
  placementClassOf,
  RUNGS,
  sameClass,
} from '#domain/placement-terms.js';
import { MIB } from '#domain/units.js';
import { decide } from './decide.js';
import { parseModelName } from './model-name.js';
import { defaultSettings } from './setting-levels.js';
import {
  ask,
  contract,
  decidedOf,
  input,
  LLAMA_SERVER,
  resident,
  residents,
  worker,
} from './testing/factories.js';

describe('the knobs', () => {
  it('have the defaults of the table, and none where it has none', () => {
    expect(defaultSettings).toEqual({
      goal: 'quality',
      allowedRungs: RUNGS,
      quantCeiling: 'auto',
      waitBeforeQuality: false,
      priority: 0,
      pinned: false,
      overdueAfterSeconds: 60,
      maxWaitSeconds: 600,
      minResidencySeconds: 0,
      idleEvictSeconds: 0,
      growRoomSeconds: 60,
      growEverySeconds: 600,
      context: 'auto',
      kvType: 'f16',
      parallel: 1,
      evictionOrder: 'loss',
      queueOrder: 'eta',
      maxQueue: 512,
    });
  });

  it.each([
    ['gpu', 'gpu-only'],
    ['moe', 'moe'],
    ['4bit', '4bit'],
    ['ram', 'ram-only'],
    ['max-ram', 'max-ram'],
    ['max-gpu', 'max-gpu'],
  ])('@%s in a name allows the rung %s alone', (option, rung) => {
    expect(parseModelName(`m@${option}`)).toMatchObject({
      value: { name: 'm', options: { settings: { allowedRungs: [rung] } } },
    });
  });
});

describe('a placement class', () => {
  const one = placementClassOf('F16', contract({ devices: [deviceId('gpu-a')] }));
  const others: readonly Partial<PlacementClass>[] = [
    { artifact: 'Q8_0' },
    { devices: [deviceId('gpu-b')] },
    { gpuLayers: 7 },
    { cpuMoeLayers: 7 },
    { kvType: 'q8_0' },
    { contextTokens: 4096 },
    { slots: 2 },
    { microBatch: 64 },
    { flashAttention: true },
    { engineBuild: 'built-in@b2' },
    { blocksByDevice: [1, 3] },
  ];

  it.each(others)('is another with %j', (change) => {
    const other = { ...one, ...change };
    expect(sameClass(one, other)).toBe(false);
    expect(classKey(other)).not.toBe(classKey(one));
  });
});

describe('a plan', () => {
  it('with a quantised cache has flash attention, on an engine that would leave it off too', () => {
    const data = decidedOf(decide(input('a', { ask: ask({ kvType: 'q8_0' }) })));
    expect(data.contract.flashAttention).toBe(true);
    expect(decidedOf(decide(input('a'))).contract.flashAttention).toBe(false);
  });

  it('names the number of threads, whatever it is', () => {
    for (const cores of [1, 2, 8])
      expect(
        decidedOf(decide(input('a', { worker: worker({ physicalCores: cores }) }))).contract.threads,
      ).toBeGreaterThan(0);
  });

  it('never has its own model go: its bytes are credit', () => {
    const own = resident('a', { bytes: 150 * MIB, contract: contract({ contextTokens: 4096 }) });
    const other = resident('b', { bytes: 40 * MIB });
    const data = decidedOf(
      decide(
        input('a', {
          worker: worker({ ramMax: 200 * MIB, residents: residents(own, other) }),
          ask: ask({ context: 8192 }),
        }),
      ),
    );
    expect(data.victims.map((v) => [v.modelKey, v.lossSeconds])).toEqual([['a', 0]]);
    expect(data.room).toEqual([{ deviceId: RAM, bytes: 10 * MIB }]);
  });

  it('beside one that loads is made for the room that its budget leaves, and is served meanwhile', () => {
    const loading = resident('b', { bytes: 300 * MIB, phase: 'loading' });
    const small = worker({ ramMax: 450 * MIB, residents: residents(loading), engines: [LLAMA_SERVER] });
    expect(decidedOf(decide(input('a', { worker: small }))).victims).toEqual([]);
    const tight = { ...small, limits: worker({ ramMax: 350 * MIB }).limits };
    expect(decide(input('a', { worker: tight }))).toMatchObject({ kind: 'wait' });
  });
});

describe('the table of refusals', () => {
  it.each([
    ['model_not_found', 404, false],
    ['model_cannot_fit', 422, false],
    ['bad_artifact', 422, false],
    ['incompatible_engine', 422, false],
    ['context_length_exceeded', 400, false],
    ['placement_timeout', 503, true],
    ['queue_full', 503, true],
    ['worker_unavailable', 503, true],
    ['event_log_unavailable', 503, true],
    ['engine_failed', 502, false],
  ] as const)('%s is %i, with Retry-After: %s', (code, status, retry) => {
    expect(ERROR_CODES[code]).toEqual({ status, retry });
  });
});

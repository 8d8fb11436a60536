import { describe, expect, it } from 'vitest';
import type { Artifact } from '#domain/events/catalog-events.js';
import { deviceId, type DeviceId, RAM } from '#domain/ids.js';
import { GIB, MIB } from '#domain/units.js';
import { planKey } from '#domain/worker/evolve.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { PlacementInput } from './contract.js';
import { decide } from './decide.js';
import { defaultSettings } from './setting-levels.js';
import {
  artifact,
  ask,
  attention,
  decidedOf,
  geometry,
  input,
  LLAMA_SERVER,
  isoBefore,
  model,
  NOW_MS,
  resident,
  residents,
  ticket,
  worker,
} from './testing/factories.js';

const A = deviceId('gpu-a');
const B = deviceId('gpu-b');
const M = 'big/m';

/** Blocks of 100 MiB, 10 of them, the output 50 MiB; KV of 8,192 tokens takes 4 MiB per block. */
const dense = (label = 'F16', blockMib = 100) =>
  artifact({
    label,
    geometry: geometry({
      blocks: Array.from({ length: 10 }, () => ({
        alwaysBytes: blockMib * MIB,
        expertBytes: 0,
        cache: attention(),
      })),
      tokenEmbeddingBytes: 50 * MIB,
      outputBytes: 50 * MIB,
    }),
  });
const experts = artifact({
  geometry: geometry({
    blocks: Array.from({ length: 10 }, () => ({
      alwaysBytes: 20 * MIB,
      expertBytes: 200 * MIB,
      cache: attention(),
    })),
    expertCount: 8,
    expertUsedCount: 2,
  }),
});

interface Box {
  readonly cards: readonly (readonly [DeviceId, number])[];
  readonly ram?: number;
  readonly more?: Partial<WorkerState>;
}

function box({ cards, ram = 16 * GIB, more = {} }: Box): WorkerState {
  return worker({
    ramMax: ram,
    ramBytes: 64 * GIB,
    engines: [LLAMA_SERVER],
    physicalCores: 16,
    memoryBandwidth: { allGBps: 40, oneCoreGBps: 10 },
    devices: cards.map(([id, mib]) => ({ deviceId: id, kind: 'cuda', name: 'card', totalBytes: mib * MIB })),
    foreign: new Map([[RAM, 0], ...cards.map(([id]) => [id, 0] as const)]),
    ...more,
  });
}

const place = (state: WorkerState, artifacts = [dense()], over: Partial<PlacementInput> = {}) =>
  decidedOf(decide(input(M, { worker: state, model: model(M, { artifacts }), ...over })));
const onDevice = (data: ReturnType<typeof place>, device: DeviceId, term = 'weights') =>
  data.need.find((t) => t.deviceId === device && t.term === term)?.bytes;

describe('the ladder on accelerators', () => {
  it('puts all layers and the output on one card that holds them, the embedding in RAM', () => {
    const data = place(box({ cards: [[A, 2000]] }));
    expect(data).toMatchObject({ rung: 'gpu-only', devices: [A], contract: { gpuLayers: 11, threads: 4 } });
    expect(onDevice(data, A)).toBe(1050 * MIB);
    expect(onDevice(data, A, 'kv')).toBe(40 * MIB);
    expect(onDevice(data, RAM)).toBe(50 * MIB);
  });

  it('chooses the card with the most room', () => {
    const state = box({
      cards: [
        [A, 2000],
        [B, 3000],
      ],
    });
    expect(place(state).devices).toEqual([B]);
  });

  it('splits over the fewest cards that hold it, in proportion to their room, when one does not', () => {
    const data = place(
      box({
        cards: [
          [A, 1000],
          [B, 500],
        ],
      }),
      [dense()],
      { ask: ask({ allowedRungs: ['gpu-only'] }) },
    );
    expect(data.devices).toEqual([A, B]);
    expect(data.contract.blocksByDevice).toEqual([7, 3]);
    expect(onDevice(data, A)).toBe(700 * MIB);
    expect(onDevice(data, B)).toBe(350 * MIB);
  });

  it('keeps the experts of the first blocks in RAM, as many on the card as its room takes', () => {
    const data = place(box({ cards: [[A, 900]] }), [experts], { ask: ask({ allowedRungs: ['moe'] }) });
    expect(data.rung).toBe('moe');
    expect(data.contract.gpuLayers).toBe(11);
    const kept = data.contract.cpuMoeLayers;
    expect(onDevice(data, RAM)).toBe(4 * MIB + kept * 200 * MIB);
    expect(onDevice(data, A)).toBe(204 * MIB + (10 - kept) * 200 * MIB);
    const used = data.need.filter((t) => t.deviceId === A).reduce((s, t) => s + (t.bytes ?? 0), 0);
    expect(used).toBeLessThanOrEqual(900 * MIB);
    expect(used + 200 * MIB).toBeGreaterThan(900 * MIB);
  });

  it('does not offer the expert split of a dense model', () => {
    const { considered } = place(box({ cards: [[A, 2000]] }));
    expect(considered.find((c) => c.rung === 'moe')).toMatchObject({
      outcome: 'not-offered',
      reason: 'the model has no experts to split',
    });
  });

  it('max-gpu fills the card with layers, max-ram only with what RAM does not hold', () => {
    const narrow = box({ cards: [[A, 600]], ram: 900 * MIB });
    const gpu = place(narrow, [dense()], { ask: ask({ allowedRungs: ['max-gpu'] }) });
    const ram = place(narrow, [dense()], { ask: ask({ allowedRungs: ['max-ram'] }) });
    expect(gpu.contract.gpuLayers).toBeGreaterThan(ram.contract.gpuLayers);
    expect(ram.contract.gpuLayers).toBeGreaterThan(0);
    for (const data of [gpu, ram]) {
      const sum = (d: DeviceId) =>
        data.need.filter((t) => t.deviceId === d).reduce((s, t) => s + (t.bytes ?? 0), 0);
      expect(sum(A)).toBeLessThanOrEqual(600 * MIB);
      expect(sum(RAM)).toBeLessThanOrEqual(900 * MIB);
    }
  });

  it('takes an approved 4-bit form on the card as the rung 4bit', () => {
    const both = [dense(), dense('Q4_K_M', 30)];
    const data = place(box({ cards: [[A, 600]], ram: 200 * MIB }), both);
    expect(data).toMatchObject({ artifact: 'Q4_K_M', rung: '4bit', devices: [A] });
  });

  it('splits the 4-bit form over two cards when neither holds it', () => {
    const both = [dense(), dense('Q4_K_M', 60)];
    const state = box({
      cards: [
        [A, 450],
        [B, 450],
      ],
      ram: 200 * MIB,
    });
    const data = place(state, both, { ask: ask({ allowedRungs: ['gpu-only', '4bit'] }) });
    expect(data).toMatchObject({ artifact: 'Q4_K_M', rung: '4bit', contract: { blocksByDevice: [5, 5] } });
  });

  it('says of the rung 4bit what keeps it from being offered', () => {
    const rungOf = (artifacts: Artifact[]) =>
      place(box({ cards: [[A, 4000]] }), artifacts).considered.find((c) => c.rung === '4bit');
    expect(rungOf([dense()])).toMatchObject({
      outcome: 'not-offered',
      reason: 'no 4-bit form of it is approved',
    });
    expect(rungOf([dense(), { ...dense('Q4_K_M', 30), complete: false }])).toMatchObject({
      outcome: 'not-offered',
      reason: 'its 4-bit form Q4_K_M: some of its files are missing',
    });
  });

  it('places a 4-bit form as an artifact of its own when the rung 4bit is not allowed', () => {
    const state = box({ cards: [[A, 600]], ram: 200 * MIB });
    const data = place(state, [dense(), dense('Q4_K_M', 30)], { ask: ask({ allowedRungs: ['gpu-only'] }) });
    expect(data).toMatchObject({ artifact: 'Q4_K_M', rung: 'gpu-only', devices: [A] });
  });

  it('evicts on the card that the plan needs, and leaves the others alone', () => {
    const onA = resident('x/a', { bytes: 1500 * MIB, device: A });
    const inRam = resident('x/r', { bytes: 500 * MIB });
    const state = box({ cards: [[A, 2000]], more: { residents: residents(onA, inRam) } });
    const data = place(state, [dense()], { ask: ask({ allowedRungs: ['gpu-only'] }) });
    expect(data.victims.map((v) => v.modelKey)).toEqual(['x/a']);
  });
});

describe('pins', () => {
  const pinned = (
    over: { gpuLayers?: number; gpuBytes?: number; ramBytes?: number },
    cards: Box['cards'] = [[A, 4000]],
  ) =>
    decide(
      input(M, {
        worker: box({ cards }),
        model: model(M, { artifacts: [dense()] }),
        ask: ask(over.gpuLayers === undefined ? {} : { gpuLayers: over.gpuLayers }),
        settings: { ...defaultSettings, ...over },
      }),
    );

  it('of layers skip the ladder and are taken as they are', () => {
    expect(decidedOf(pinned({ gpuLayers: 4 }))).toMatchObject({
      rung: 'max-gpu',
      contract: { gpuLayers: 4 },
    });
    expect(decidedOf(pinned({ gpuLayers: 0 }))).toMatchObject({ rung: 'ram-only', devices: [] });
  });

  it('that the model does not have are refused with figures', () => {
    expect(pinned({ gpuLayers: 40 })).toHaveProperty(
      'error.message',
      expect.stringContaining('40 GPU layers are pinned, and the model has 11'),
    );
  });

  it('of bytes are a budget, honoured or refused', () => {
    const data = decidedOf(pinned({ gpuBytes: 500 * MIB }));
    expect(
      data.need.filter((t) => t.deviceId === A).reduce((s, t) => s + (t.bytes ?? 0), 0),
    ).toBeLessThanOrEqual(500 * MIB);
    expect(pinned({ ramBytes: 10 * MIB })).toHaveProperty(
      'error.message',
      expect.stringContaining('10.0 MiB of RAM are pinned'),
    );
  });

  it('to a card are refused on a worker without one', () => {
    expect(pinned({ gpuLayers: 4 }, [])).toMatchObject({
      kind: 'refused',
      error: { code: 'model_cannot_fit' },
    });
  });
});

describe('the choice by goal', () => {
  const crowded = (goal: 'quality' | 'fast' | 'resident') =>
    place(
      box({
        cards: [[A, 2000]],
        more: { residents: residents(resident('x/a', { bytes: 1500 * MIB, device: A })) },
      }),
      [dense()],
      { settings: { ...defaultSettings, goal }, ticket: ticket(M, { maxTokens: 400 }) },
    );

  it('fast evicts for the card, resident stays out of the way', () => {
    expect(crowded('fast').rung).toBe('gpu-only');
    expect(crowded('resident').victims).toEqual([]);
  });

  it('quality does not take full precision in RAM that is over three times slower than a smaller form on the card', () => {
    const both = [dense('F16', 900), dense('Q8_0', 50)];
    const data = place(box({ cards: [[A, 1500]] }), both, { ticket: ticket(M, { maxTokens: 2000 }) });
    expect(data).toMatchObject({ artifact: 'Q8_0', rung: 'gpu-only' });
  });

  it('waits for the better artifact when it is told to and a call is expected to end in time', () => {
    const busy = resident('x/a', { bytes: 1500 * MIB, device: A });
    const given = (waitBeforeQuality: boolean) =>
      decide(
        input(M, {
          worker: box({ cards: [[A, 2000]], ram: 200 * MIB, more: { residents: residents(busy) } }),
          model: model(M, { artifacts: [dense(), dense('Q8_0', 30)] }),
          settings: { ...defaultSettings, waitBeforeQuality },
          activity: new Map([[busy.residentId, { callsInFlight: 1, freeInSeconds: 9 }]]),
        }),
      );
    expect(decidedOf(given(false)).artifact).toBe('Q8_0');
    expect(given(true)).toMatchObject({ kind: 'wait', freeInSeconds: 9 });
  });

  it('waits for the card while a call there ends sooner than RAM would have the answer, and not once it is overdue', () => {
    const busy = resident('x/a', { bytes: 1500 * MIB, device: A });
    const given = (freeInSeconds: number, waitedSeconds = 0) =>
      decide(
        input(M, {
          worker: box({ cards: [[A, 2000]], more: { residents: residents(busy) } }),
          model: model(M, { artifacts: [dense()] }),
          ticket: ticket(M, { maxTokens: 2000, arrivedAtMs: NOW_MS - waitedSeconds * 1000 }),
          ask: ask({ allowedRungs: ['gpu-only', 'ram-only'] }),
          activity: new Map([[busy.residentId, { callsInFlight: 1, freeInSeconds }]]),
        }),
      );
    const soon = given(2);
    expect(soon).toMatchObject({ kind: 'wait', freeInSeconds: 2 });
    expect(soon.kind === 'wait' && soon.reason).toContain('F16 as gpu-only is waited for: needs');
    expect(decidedOf(given(400)).rung).toBe('ram-only');
    expect(decidedOf(given(2, 61)).rung).toBe('ram-only');
  });

  it('prefers another card to the one where the same plan failed', () => {
    const two = box({
      cards: [
        [A, 2000],
        [B, 1900],
      ],
    });
    const first = place(two);
    expect(first.devices).toEqual([A]);
    const failed = {
      modelKey: first.modelKey,
      artifact: 'F16',
      class: 'out-of-memory',
      message: 'no',
      at: isoBefore(5),
      times: 1,
      // The room grew since: it may be tried again.
      roomBytes: [{ deviceId: A, bytes: 1 }],
    };
    const after = { ...two, failedPlans: new Map([[planKey(first), failed]]) };
    expect(place(after).devices).toEqual([B]);
  });
});

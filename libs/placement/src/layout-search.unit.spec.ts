import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Artifact } from '#domain/events/catalog-events.js';
import { deviceId, type DeviceId, RAM } from '#domain/ids.js';
import type { Rung } from '#domain/placement-terms.js';
import { GIB, MIB } from '#domain/units.js';
import type { PlacementInput, PlacementOutcome } from './contract.js';
import { decide } from './decide.js';
import { least } from './layout-terms.js';
import {
  artifact,
  ask,
  attention,
  decidedOf,
  geometry,
  input,
  LLAMA_SERVER,
  model,
  resident,
  residents,
  worker,
} from './testing/factories.js';

const CARDS = [deviceId('gpu-a'), deviceId('gpu-b'), deviceId('gpu-c')];
const [A, B] = CARDS as [DeviceId, DeviceId];

interface Held {
  readonly on: DeviceId;
  readonly mib: number;
  readonly busy?: true;
}

interface Given {
  readonly rung: Rung;
  readonly cardsMib: readonly number[];
  readonly held?: readonly Held[];
  readonly ramMib?: number;
  readonly of?: Artifact;
}

/** Ten blocks, an output of 4 MiB and work buffers of about 7 MiB. */
const blocks = (alwaysMib: number, expertMib = 0): Artifact =>
  artifact({
    geometry: geometry({
      blocks: Array.from({ length: 10 }, () => ({
        alwaysBytes: alwaysMib * MIB,
        expertBytes: expertMib * MIB,
        cache: attention(),
      })),
      ...(expertMib > 0 ? { expertCount: 8, expertUsedCount: 2 } : {}),
    }),
  });

function outcomeOf({
  rung,
  cardsMib,
  held = [],
  ramMib = 16_384,
  of = blocks(100),
}: Given): PlacementOutcome {
  const list = held.map(({ on, mib }, i) => resident(`old/m${i}`, { bytes: mib * MIB, device: on }));
  const activity: PlacementInput['activity'] = new Map(
    list.map((r, i) => [r.residentId, { callsInFlight: held[i]?.busy ? 1 : 0 }]),
  );
  const cards = cardsMib.map((mib, i) => ({
    deviceId: CARDS[i] ?? A,
    kind: 'cuda' as const,
    name: 'card',
    totalBytes: mib * MIB,
  }));
  return decide(
    input('big/m', {
      worker: worker({
        ramMax: ramMib * MIB,
        ramBytes: 64 * GIB,
        physicalCores: 16,
        engines: [LLAMA_SERVER],
        devices: cards,
        foreign: new Map([[RAM, 0], ...cards.map((c) => [c.deviceId, 0] as const)]),
        residents: residents(...list),
      }),
      model: model('big/m', { artifacts: [of] }),
      ask: ask({ context: 4096, allowedRungs: [rung] }),
      activity,
    }),
  );
}

const place = (given: Given) => decidedOf(outcomeOf(given));
type Placed = ReturnType<typeof place>;
const victims = (data: Placed) => data.victims.map((v) => v.modelKey);
const takes = (data: Placed, device: DeviceId) =>
  data.need.reduce((sum, t) => sum + (t.deviceId === device ? (t.bytes ?? 0) : 0), 0);

describe('a rung that divides a model', () => {
  it('max-gpu takes the room that is there before it has anybody go', () => {
    const data = place({ rung: 'max-gpu', cardsMib: [600], held: [{ on: A, mib: 300 }] });
    expect(victims(data)).toEqual([]);
    expect(data.contract.gpuLayers).toBe(3);
  });

  it('max-gpu has the least go where no layer fits, and lays out as many as that makes room for', () => {
    const held = [
      { on: A, mib: 350 },
      { on: A, mib: 245 },
    ];
    const data = place({ rung: 'max-gpu', cardsMib: [600], held });
    expect(data.victims).toHaveLength(1);
    expect(data.contract.gpuLayers).toBeGreaterThan(1);
    const freed = data.victims[0]?.frees[0]?.bytes ?? 0;
    expect(takes(data, A)).toBeLessThanOrEqual(freed + 5 * MIB);
  });

  it('max-gpu waits for a card that is full of calls, and says who holds it', () => {
    const outcome = outcomeOf({
      rung: 'max-gpu',
      cardsMib: [600],
      held: [{ on: A, mib: 598, busy: true }],
    });
    expect(outcome.kind === 'wait' && outcome.reason).toMatch(/needs .* of device gpu-a.*old\/m0 holds 598/);
  });

  it('max-gpu on a card that holds not even the output is refused with both figures', () => {
    const outcome = outcomeOf({ rung: 'max-gpu', cardsMib: [3] });
    expect(outcome).toMatchObject({ kind: 'refused', data: { code: 'model_cannot_fit' } });
    expect(outcome.kind === 'refused' && outcome.data.reason).toMatch(
      /needs .* of device gpu-a, and its size is 3\.0 MiB/,
    );
  });

  it('max-ram evicts in RAM where not even what must be there has room, on no card more than it needs', () => {
    const data = place({
      rung: 'max-ram',
      cardsMib: [2000],
      ramMib: 500,
      held: [{ on: RAM, mib: 499 }],
    });
    expect(victims(data)).toEqual(['old/m0']);
    expect(takes(data, RAM)).toBeLessThanOrEqual(500 * MIB);
    expect(data.contract.gpuLayers).toBeLessThan(11);
  });

  it('max-ram over two cards splits its overflow by the room that an eviction gives', () => {
    const data = place({
      rung: 'max-ram',
      cardsMib: [450, 450],
      ramMib: 400,
      held: [
        { on: A, mib: 400 },
        { on: B, mib: 400 },
      ],
    });
    expect(data.devices).toEqual([A, B]);
    expect(victims(data)).toHaveLength(2);
    for (const card of [A, B]) expect(takes(data, card)).toBeLessThanOrEqual(450 * MIB);
  });

  it('moe has the least go for its backbone, and keeps as many experts on the card as that frees', () => {
    const of = blocks(20, 100);
    const data = place({ rung: 'moe', of, cardsMib: [800], held: [{ on: A, mib: 790 }] });
    expect(victims(data)).toEqual(['old/m0']);
    expect(data.contract.cpuMoeLayers).toBeLessThan(10);
    const used = takes(data, A);
    expect(used).toBeLessThanOrEqual(800 * MIB);
    expect(used + 100 * MIB).toBeGreaterThan(800 * MIB);
  });

  it('moe lies on the fewest cards that hold its backbone', () => {
    const of = blocks(100, 400);
    const data = place({ rung: 'moe', of, cardsMib: [700, 700, 700] });
    expect(data.devices).toEqual([A, B]);
    expect(data.contract.blocksByDevice?.reduce((sum, n) => sum + n, 0)).toBe(10);
    for (const card of [A, B]) expect(takes(data, card)).toBeLessThanOrEqual(700 * MIB);
  });

  it('moe over two cards is split by the room that an eviction gives', () => {
    const of = blocks(100, 400);
    const data = place({ rung: 'moe', of, cardsMib: [700, 700], held: [{ on: B, mib: 690 }] });
    expect(victims(data)).toEqual(['old/m0']);
    expect(data.devices).toHaveLength(2);
  });
});

describe('where a search ends', () => {
  it('is the first that holds, whatever is guessed', () => {
    const place = fc.integer({ min: -2, max: 40 });
    fc.assert(
      fc.property(fc.nat(30), place, fc.option(place, { nil: undefined }), (to, first, guess) => {
        const found = least(
          0,
          to,
          (n) => n >= first,
          () => guess,
        );
        expect(found).toBe(first > to ? undefined : Math.max(0, first));
      }),
    );
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deviceId, RAM } from '#domain/ids.js';
import { GIB, MIB } from '#domain/units.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import { decide } from './decide.js';
import { roomOf } from './room.js';
import { placementPlanStillStands } from './still-stands.js';
import {
  artifact,
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

const METAL = deviceId('metal-0');
const M = 'big/m';

/** A machine of 16 GiB of which graphics may have 12; other programs hold so much. */
const mac = (foreign: number, more: Partial<WorkerState> = {}): WorkerState =>
  worker({
    ramMax: 16 * GIB,
    ramBytes: 16 * GIB,
    engines: [LLAMA_SERVER],
    physicalCores: 8,
    memoryBandwidth: { allGBps: 100, oneCoreGBps: 40 },
    devices: [{ deviceId: METAL, kind: 'metal', name: 'Apple M2', totalBytes: 12 * GIB, sharesRam: true }],
    // The graphics' own reading counts everything of the machine once more: it is not looked at.
    foreign: new Map([
      [RAM, foreign],
      [METAL, foreign],
    ]),
    ...more,
  });

const onMetal = (key: string, bytes: number): Resident => resident(key, { bytes, device: METAL });

/** Ten blocks of so many MiB, and an embedding and an output of 50. */
const dense = (blockMib: number) =>
  artifact({
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

const place = (state: WorkerState, blockMib: number) =>
  decide(input(M, { worker: state, model: model(M, { artifacts: [dense(blockMib)] }) }));

describe('memory that an accelerator shares with the host', () => {
  it('has the room of the smaller bound, and other programs are counted once', () => {
    expect(roomOf(mac(8 * GIB), METAL).roomBytes).toBe(8 * GIB);
    expect(roomOf(mac(GIB), METAL).roomBytes).toBe(12 * GIB);
    expect(roomOf(mac(GIB), RAM).roomBytes).toBe(15 * GIB);
  });

  it('is taken on both sides by what is placed on either', () => {
    const state = mac(4 * GIB, {
      residents: residents(onMetal('a', 5 * GIB), resident('b', { bytes: 3 * GIB })),
    });
    expect(roomOf(state, RAM).roomBytes).toBe(4 * GIB);
    expect(roomOf(state, METAL).roomBytes).toBe(4 * GIB);
    const planned = { ...onMetal('a', 5 * GIB), phase: 'planned' as const };
    expect(roomOf(mac(4 * GIB, { residents: residents(planned) }), RAM).reservedBytes).toBe(5 * GIB);
  });

  it('is unknown there when it is unknown in RAM', () => {
    expect(roomOf(mac(0, { foreign: new Map([[METAL, 0]]) }), METAL)).toMatchObject({
      unknown: expect.stringContaining('no reading yet') as string,
    });
  });

  it('is not a property of a card with memory of its own', () => {
    const own = mac(8 * GIB, {
      devices: [{ deviceId: METAL, kind: 'cuda', name: 'card', totalBytes: 12 * GIB }],
      foreign: new Map([
        [RAM, 8 * GIB],
        [METAL, 0],
      ]),
    });
    expect(roomOf(own, METAL).roomBytes).toBe(12 * GIB);
  });

  it('is given free on both sides by an eviction, and a plan is held against both', () => {
    const old = onMetal('a', 6 * GIB);
    const state = mac(4 * GIB, { residents: residents(old) });
    const data = decidedOf(place(state, 700));
    expect(data).toMatchObject({ rung: 'gpu-only', devices: [METAL] });
    expect(data.victims.map((v) => v.modelKey)).toEqual(['a']);
    expect(placementPlanStillStands(data, state)).toBe(true);
    // Something took RAM meanwhile, and nothing of the graphics' bound.
    const fuller = { ...state, foreign: new Map([[RAM, 10 * GIB]]) };
    expect(placementPlanStillStands(data, fuller)).toBe(false);
  });

  it('holds every plan, however it is split, and never more', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 15 }),
        fc.integer({ min: 10, max: 1800 }),
        (foreignGib, blockMib) => {
          const state = mac(foreignGib * GIB);
          const outcome = place(state, blockMib);
          if (outcome.kind !== 'decided') return;
          const { need } = decidedOf(outcome);
          const total = need.reduce((sum, term) => sum + (term.bytes ?? 0), 0);
          expect(total).toBeLessThanOrEqual(roomOf(state, RAM).roomBytes ?? 0);
        },
      ),
    );
  });
});

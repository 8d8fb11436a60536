import { describe, expect, it } from 'vitest';
import { deviceId, DISK, RAM } from '#domain/ids.js';
import { MIB } from '#domain/units.js';
import { chargeOf } from './charges.js';
import { encroachment, limitAboveParent, roomBytes, roomOf } from './room.js';
import { contract, ramBytes, resident, residents, worker } from './testing/factories.js';

const CARD = deviceId('gpu-a');

describe('room', () => {
  it.each([
    [128, 90, 20, 10, 70],
    [128, 90, 20, 50, 58],
  ])(
    'D %i, M %i, U %i, X %i leaves %i (table of the rules)',
    (capacityBytes, limitBytes, residentsBytes, foreignBytes, room) => {
      expect(roomBytes({ capacityBytes, limitBytes, residentsBytes, foreignBytes, reservedBytes: 0 })).toBe(
        room,
      );
    },
  );

  it('counts foreign use only where it eats into the limit', () => {
    expect(encroachment({ capacityBytes: 128, limitBytes: 90, foreignBytes: 38 })).toBe(0);
    expect(encroachment({ capacityBytes: 128, limitBytes: 90, foreignBytes: 40 })).toBe(2);
  });

  it('takes the smallest tier as the limit', () => {
    const tiers = worker({
      limits: { designation: new Map([['ram', 100]]), setting: new Map([['ram', 60]]) },
    });
    expect(roomOf(tiers, RAM)).toMatchObject({ limitBytes: 60, limitTier: 'setting', roomBytes: 60 });
  });

  it('is unknown, not zero and not free, without a reading', () => {
    const room = roomOf(worker({ foreign: new Map() }), RAM);
    expect(room.roomBytes).toBeUndefined();
    expect(room.unknown).toMatch(/no reading yet/);
  });

  it('is unknown again when the driver tells nothing any more, with what was known and since when', () => {
    const since = '2026-01-02T03:04:05.000Z';
    const silent = (foreignBytes?: number) =>
      worker({
        foreign: new Map(),
        silent: new Map([[RAM, { since, ...(foreignBytes ? { foreignBytes } : {}) }]]),
      });
    expect(roomOf(silent(), RAM).unknown).toBe(`its driver has not told what is used of RAM since ${since}`);
    expect(roomOf(silent(512 * MIB), RAM).unknown).toMatch(/; other programs used 512.0 MiB of it then$/);
    expect(roomOf(silent(512 * MIB), RAM).roomBytes).toBeUndefined();
  });

  it('refuses a setting above its parent tier, naming the tier', () => {
    const tiers = worker({
      ramMax: 100,
      physicalCores: 8,
      devices: [{ deviceId: CARD, kind: 'cuda', name: 'card', totalBytes: 1000, driverReservedBytes: 200 }],
      drives: [
        { mount: '/models', totalBytes: 500, freeBytes: 100 },
        { mount: '/', totalBytes: 900, freeBytes: 900 },
      ],
    });
    expect(limitAboveParent(tiers, RAM, 101)).toEqual({ tier: 'designation', value: 100 });
    expect(limitAboveParent(tiers, RAM, 100)).toBeUndefined();
    expect(limitAboveParent(tiers, CARD, 801)).toEqual({ tier: 'device', value: 800 });
    expect(limitAboveParent(tiers, CARD, 800)).toBeUndefined();
    expect(limitAboveParent(tiers, 'cores', 9)).toEqual({ tier: 'device', value: 8 });
    expect(limitAboveParent(tiers, DISK, 501)).toEqual({ tier: 'device', value: 500 });
    const atStart = { ...tiers, limits: { ...tiers.limits, designation: new Map([['disk', 400]]) } };
    expect(limitAboveParent(atStart, DISK, 401)).toEqual({ tier: 'designation', value: 400 });
    expect(limitAboveParent(atStart, DISK, 400)).toBeUndefined();
  });

  it('reserves the budget of a plan until it is ready, less what its own victims still hold', () => {
    const victim = resident('a', { bytes: 90 });
    const planned = resident('b', { bytes: 80, phase: 'planned' });
    const leaving = {
      ...victim,
      leaving: { by: planned.decisionId, reason: 'room' as const, started: false, sinceRevision: 0 },
    };
    const decision = {
      decisionId: planned.decisionId,
      residentId: planned.residentId,
      revision: 1,
      eventId: 'e',
      data: { victims: [{ residentId: victim.residentId }] },
    };
    const state = worker({
      ramMax: 100,
      residents: residents(leaving, planned),
      openDecisions: new Map([[planned.decisionId, decision as never]]),
    });
    expect(roomOf(state, RAM)).toMatchObject({ residentsBytes: 90, reservedBytes: 0, roomBytes: 10 });
  });
});

describe('a resident that serves', () => {
  const need = [
    { deviceId: RAM, term: 'weights', bytes: 50, basis: 'measured' },
    { deviceId: RAM, term: 'kv', bytes: 40, basis: 'measured' },
  ] as const;
  const measured = {
    byDevice: [ramBytes(50, 10)],
    hostAnonymousBytes: 0,
    hostResidentBytes: 60,
    contextTokens: 8192,
    slots: 1,
  };

  it('reserves nothing when its engine holds all of its cache from the start', () => {
    const state = worker({ ramMax: 200, residents: residents(resident('a', { need, measured })) });
    expect(roomOf(state, RAM)).toMatchObject({ residentsBytes: 60, reservedBytes: 0, roomBytes: 140 });
  });
});

describe('the charge of a resident', () => {
  const gpu = deviceId('gpu-a');

  it('of a GPU resident with 45.2 GB mapped and 1.5 GB anonymous is 1.5 GB of RAM', () => {
    const onCard = resident('a', {
      contract: contract({ gpuLayers: 33, devices: [gpu] }),
      need: [{ deviceId: gpu, term: 'weights', bytes: 45e9, basis: 'measured' }],
      measured: {
        byDevice: [{ ...ramBytes(45e9), deviceId: gpu }, ramBytes(45.2e9)],
        hostAnonymousBytes: 1.5e9,
        hostResidentBytes: 46.7e9,
        contextTokens: 8192,
        slots: 1,
      },
    });
    expect(chargeOf(onCard).bytes.get(RAM)).toBe(1.5e9);
    expect(chargeOf(onCard).bytes.get(gpu)).toBe(45e9);
  });

  it('of a RAM resident keeps its mapped weights, so that they can stay', () => {
    const inRam = resident('a', { bytes: 100 * MIB });
    expect(chargeOf(inRam).bytes.get(RAM)).toBe(100 * MIB);
    const heavier = { ...inRam, measured: { ...inRam.measured!, hostAnonymousBytes: 150 * MIB } };
    expect(chargeOf(heavier).bytes.get(RAM)).toBe(150 * MIB);
  });

  it('counts a mapped file once for two residents of it', () => {
    const one = resident('a', { bytes: 100 });
    const two = { ...one, residentId: 'resident-of-a2' as typeof one.residentId };
    expect(roomOf(worker({ ramMax: 1000, residents: residents(one, two) }), RAM).roomBytes).toBe(900);
  });
});

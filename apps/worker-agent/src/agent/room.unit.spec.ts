import { describe, expect, it } from 'vitest';
import type { DeviceOnWorker } from '#domain/events/worker-events.js';
import { deviceId, RAM } from '#domain/ids.js';
import { GIB } from '#domain/units.js';
import { heldOn, measuredInRam } from './readings.js';
import { needWithShared, roomOf, tooSmall } from './room.js';

const METAL = deviceId('metal-0');
const CARD = deviceId('GPU-1');
const metal: DeviceOnWorker = {
  deviceId: METAL,
  kind: 'metal',
  name: 'Apple M2',
  totalBytes: 12 * GIB,
  sharesRam: true,
};
const card: DeviceOnWorker = {
  deviceId: CARD,
  kind: 'cuda',
  name: 'card',
  totalBytes: 24 * GIB,
  driverReservedBytes: GIB,
};

describe('the room that is read before a plan is acted on', () => {
  it('is what the driver leaves; of a driver that says nothing it is unknown, and too small for anything', () => {
    expect(roomOf([CARD], 5 * GIB, [{ device: card, usedBytes: 3 * GIB }])).toEqual([
      { deviceId: CARD, bytes: 20 * GIB },
    ]);
    const silent = roomOf([CARD], 5 * GIB, [{ device: card }]);
    expect(silent).toEqual([{ deviceId: CARD }]);
    expect(tooSmall(new Map([[CARD, 1]]), silent)).toEqual({
      deviceId: CARD,
      needBytes: 1,
      roomBytes: undefined,
    });
  });

  it('of memory that is the host’s is the host’s, up to its bound', () => {
    const read = { device: metal, usedBytes: 11 * GIB };
    expect(roomOf([METAL, RAM], 9 * GIB, [read])).toEqual([
      { deviceId: METAL, bytes: 9 * GIB },
      { deviceId: RAM, bytes: 9 * GIB },
    ]);
    expect(roomOf([METAL], 20 * GIB, [read])).toEqual([{ deviceId: METAL, bytes: 12 * GIB }]);
  });

  it('must hold in the host what a plan takes on both sides of one memory', () => {
    const need = new Map([
      [METAL, 6 * GIB],
      [CARD, GIB],
      [RAM, 2 * GIB],
    ]);
    expect(needWithShared(need, [metal, card]).get(RAM)).toBe(8 * GIB);
    expect(needWithShared(new Map([[CARD, GIB]]), [metal, card])).toEqual(new Map([[CARD, GIB]]));
  });
});

describe('what is ours on an accelerator', () => {
  const measured = (bytes: number, processBytes: number) => ({
    measured: {
      byDevice: [
        { deviceId: CARD, weightsBytes: bytes - processBytes, kvBytes: 0, computeBytes: 0, processBytes },
      ],
    },
  });
  const residents = new Map<string, object>([
    ['a', measured(5 * GIB, GIB)],
    ['b', {}],
  ]) as never;
  const owners = new Map<number, string>([
    [1, 'a'],
    [2, 'a'],
    [3, 'b'],
    [4, 'leaving'],
  ]);
  const held = (processes: readonly { pid: number; bytes?: number }[] | undefined) =>
    heldOn(
      { device: card, ...(processes ? { processes } : {}) },
      (pid) => owners.get(pid) as never,
      residents,
    );

  it('is what the driver says of it, of a resident at most what it is charged with', () => {
    expect(
      held([
        { pid: 1, bytes: 3 * GIB },
        { pid: 99, bytes: GIB },
      ]),
    ).toBe(3 * GIB);
    expect(
      held([
        { pid: 1, bytes: 3 * GIB },
        { pid: 2, bytes: 3 * GIB },
      ]),
    ).toBe(5 * GIB);
    // One that loads is charged with its plan, and one that is gone with nothing: all that they hold is theirs.
    expect(
      held([
        { pid: 3, bytes: 7 * GIB },
        { pid: 4, bytes: GIB },
      ]),
    ).toBe(8 * GIB);
  });

  it('is all of what the first engine on a card holds until it is known what its process takes', () => {
    const first = new Map<string, object>([['a', measured(5 * GIB, 0)]]) as never;
    const processes = [{ pid: 1, bytes: 5.5 * GIB }];
    expect(heldOn({ device: card, processes }, (pid) => owners.get(pid) as never, first)).toBe(5.5 * GIB);
  });

  it('is what was measured where the driver lists no processes, or not what they hold', () => {
    for (const silent of [undefined, [], [{ pid: 1 }]]) expect(held(silent)).toBe(5 * GIB);
  });
});

it('where the system lists no processes, a resident counts in RAM with all that it was measured to hold there', () => {
  const part = (device: typeof METAL, bytes: number) => ({
    deviceId: device,
    weightsBytes: bytes,
    kvBytes: 0,
    computeBytes: 0,
    processBytes: 0,
  });
  const measured = { byDevice: [part(METAL, 5 * GIB), part(CARD, GIB)], hostAnonymousBytes: GIB };
  const state = { devices: [metal, card], residents: new Map([['r', { measured }]]) } as never;
  expect(measuredInRam(state, 'r' as never)).toBe(6 * GIB);
  expect(measuredInRam(state, 'other' as never)).toBe(0);
});

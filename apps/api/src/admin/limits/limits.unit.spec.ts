import { describe, expect, it } from 'vitest';
import { BerthFailure } from '#domain/errors.js';
import { deviceId, DISK, RAM } from '#domain/ids.js';
import { GIB } from '#domain/units.js';
import { worker } from '#placement/testing/factories.js';
import type { Fleet } from '../../fleet/fleet.js';
import type { CommandLog } from '../commands/command-log.js';
import { LimitsController, SetLimit } from './limits.controller.js';

const card = deviceId('gpu-a');
const state = worker({
  ramBytes: 64 * GIB,
  limits: {
    designation: new Map([
      [RAM, 32 * GIB],
      [DISK, 80 * GIB],
    ]),
    setting: new Map(),
  },
  drives: [{ mount: '/', totalBytes: 100 * GIB, freeBytes: 90 * GIB }],
  physicalCores: 8,
  devices: [{ deviceId: card, kind: 'cuda', name: 'card', totalBytes: 24 * GIB, driverReservedBytes: GIB }],
});

/** What is answered, and what is written. */
async function set(resource: string, value: number | null) {
  const written: unknown[] = [];
  const fleet = { catchUpWorker: () => Promise.resolve(), worker: () => state };
  const log = {
    append: (_: string, { data }: { data: unknown }) => {
      written.push(data);
      return Promise.resolve({ position: '1', revision: 1 });
    },
  };
  const asked = Object.assign(new SetLimit(), { resource, value });
  const controller = new LimitsController(fleet as unknown as Fleet, log as unknown as CommandLog);
  const error = await controller.set(state.workerId, asked, 'admin').then(
    () => undefined,
    (thrown: unknown) => (thrown instanceof BerthFailure ? thrown.error : thrown),
  );
  return { written, error };
}

describe('a limit that is set', () => {
  it.each([
    [
      'ram',
      33 * GIB,
      '33.00 GiB is more than the limit of 32.00 GiB that the worker was started with for RAM.',
    ],
    [card, 24 * GIB, '24.00 GiB is more than the 23.00 GiB that device gpu-a has.'],
    [
      'disk',
      81 * GIB,
      '81.00 GiB is more than the limit of 80.00 GiB that the worker was started with for the drive of models.',
    ],
    ['cores', 9, '9 cores is more than the 8 cores that the machine has.'],
  ])(
    'above its parent tier is refused, naming the tier and both figures: %s',
    async (resource, value, text) => {
      const { written, error } = await set(resource, value);
      expect(error).toMatchObject({ code: 'limit_above_parent', param: 'value' });
      expect((error as Error).message).toContain(text);
      expect(written).toEqual([]);
    },
  );

  it.each([
    ['ram', 32 * GIB],
    [card, 23 * GIB],
    ['disk', 80 * GIB],
    ['cores', 8],
  ])('at its parent tier is written: %s', async (resource, value) => {
    const { written, error } = await set(resource, value);
    expect(error).toBeUndefined();
    expect(written).toEqual([{ resource, tier: 'setting', value, by: 'admin' }]);
  });

  it('of what the worker does not have is refused with what it has', async () => {
    const { error } = await set('gpu-9', 1);
    expect(error).toMatchObject({ code: 'invalid_request', param: 'resource' });
    expect((error as Error).message).toContain('It has ram, gpu-a, disk, cores.');
  });
});

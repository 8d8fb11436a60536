import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DISK } from '../ids.js';
import { GIB } from '../units.js';
import { DISK_SPARE_BYTES, diskLimitOf, diskRoom, whyBeyondDisk } from './disk-limit.js';

const tier = (bytes: number | undefined) => new Map(bytes === undefined ? [] : [[DISK, bytes]]);

describe('the limit of what models take on the disk', () => {
  it.each([
    [undefined, undefined, undefined],
    [40, undefined, { bytes: 40, tier: 'designation' }],
    [undefined, 30, { bytes: 30, tier: 'setting' }],
    [40, 30, { bytes: 30, tier: 'setting' }],
    [40, 40, { bytes: 40, tier: 'designation' }],
    [20, 30, { bytes: 20, tier: 'designation' }],
  ])('set at start to %j and by an admin to %j is %j', (designation, setting, limit) => {
    expect(diskLimitOf({ designation: tier(designation), setting: tier(setting) })).toEqual(limit);
  });

  it('refuses a transfer exactly when what is there, what others bring and itself are above it', () => {
    const bytes = fc.integer({ min: 0, max: 1000 });
    fc.assert(
      fc.property(bytes, bytes, bytes, bytes, (limit, neededBytes, thereBytes, comingBytes) => {
        const why = whyBeyondDisk(
          { bytes: limit, tier: 'setting' },
          { neededBytes, thereBytes, comingBytes },
          '/m',
        );
        expect(why === undefined).toBe(neededBytes + thereBytes + comingBytes <= limit);
      }),
    );
  });

  it.each([
    [undefined, 10, undefined, undefined],
    [40, 10, undefined, 30],
    [undefined, 10, 5, 5],
    [40, 10, 50, 30],
    [40, 10, 20, 20],
    [40, 50, 20, 0],
  ])('of %j with %j there and %j free beyond the spare leaves a transfer %j', (limit, there, free, room) => {
    const set = limit === undefined ? undefined : ({ bytes: limit, tier: 'setting' } as const);
    expect(diskRoom(set, there, free === undefined ? undefined : free + DISK_SPARE_BYTES)).toBe(room);
  });

  it('is said with every figure, who set it and the next step', () => {
    const use = { neededBytes: 12 * GIB, thereBytes: 30 * GIB, comingBytes: 0 };
    expect(whyBeyondDisk({ bytes: 40 * GIB, tier: 'designation' }, use, '/m')).toBe(
      '12.00 GiB are needed in /m, where models take 30.00 GiB; the limit set at start (disk-max) is 40.00 GiB. ' +
        'Remove a model, pick a smaller quant, or raise the limit.',
    );
    expect(whyBeyondDisk({ bytes: 40 * GIB, tier: 'setting' }, { ...use, comingBytes: GIB }, '/m')).toContain(
      'models take 30.00 GiB and other transfers bring 1.00 GiB; the limit set by an admin is 40.00 GiB.',
    );
  });
});

import { describe, expect, it } from 'vitest';
import type { DeviceItem, ResidentItem } from '#domain/wire/index.js';
import { barOf } from './device-bar.js';

const device = (more: Partial<DeviceItem>): DeviceItem => ({
  workerId: 'w',
  workerName: 'w',
  workerLost: false,
  deviceId: 'ram',
  residentBytes: 0,
  foreignBytes: 0,
  ...more,
});
const resident = (bytes: number, more: Partial<ResidentItem> = {}): ResidentItem => ({
  residentId: `r${bytes}`,
  workerId: 'w',
  modelKey: `m${bytes}`,
  phase: 'ready',
  memory: [{ deviceId: 'ram', bytes, basis: 'measured' }],
  ...more,
});

describe('the bar of a device', () => {
  it.each([
    [128, 90, 20, 10, 70],
    [128, 90, 20, 50, 58],
  ])(
    'of %i with a limit of %i, %i ours and %i of others has room for %i',
    (total, limit, ours, others, room) => {
      const bar = barOf(device({ totalBytes: total, limitBytes: limit, foreignBytes: others }), [
        resident(ours),
      ]);
      expect(bar?.roomBytes).toBe(room);
      expect(bar?.scaleBytes).toBe(limit);
    },
  );

  it('counts what is decided and still loads as a budget, and what is leaving apart', () => {
    const leaving = { reason: 'room', started: true };
    const bar = barOf(device({ totalBytes: 100 }), [
      resident(30),
      resident(20, { phase: 'loading' }),
      resident(10, { leaving }),
    ]);
    expect(bar?.parts.map(({ kind, bytes }) => [kind, bytes])).toEqual([
      ['resident', 30],
      ['leaving', 10],
      ['budget', 20],
    ]);
    expect([bar?.heldBytes, bar?.budgetBytes, bar?.roomBytes]).toEqual([40, 20, 40]);
  });

  it('counts the room that a victim gives to a load once, and says for whom it goes', () => {
    const bar = barOf(device({ totalBytes: 100 }), [
      resident(40, { leaving: { reason: 'room', started: true, decisionId: 'd' } }),
      resident(60, { phase: 'loading', decisionId: 'd' }),
    ]);
    expect(bar?.parts.map(({ label, bytes }) => [label, bytes])).toEqual([
      ['m40 → m60', 40],
      ['m60', 20],
    ]);
    expect([bar?.budgetBytes, bar?.roomBytes]).toEqual([20, 40]);
  });

  it('takes off what the driver keeps, and tells no room without a reading', () => {
    const { foreignBytes: _, ...unread } = device({ totalBytes: 100, reservedBytes: 8 });
    const bar = barOf(unread, []);
    expect(bar?.limitBytes).toBe(92);
    expect(bar?.roomBytes).toBeUndefined();
  });

  it('grows beyond the limit where more is held than may be', () => {
    const bar = barOf(device({ totalBytes: 100, limitBytes: 20 }), [resident(30)]);
    expect([bar?.scaleBytes, bar?.roomBytes]).toEqual([30, 0]);
  });

  it('is of one worker and one device alone, and none before its size is known', () => {
    const elsewhere = [resident(30, { workerId: 'other' }), resident(5, { memory: [] })];
    expect(barOf(device({ totalBytes: 100 }), elsewhere)?.parts).toEqual([]);
    expect(barOf(device({}), [])).toBeUndefined();
  });
});

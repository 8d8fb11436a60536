import { describe, expect, it } from 'vitest';
import type { CallItem, DeviceItem, ResidentItem } from '#domain/wire/index.js';
import { lanesOf, ticksOf } from './lanes.js';

const at = (seconds: number) => new Date(seconds * 1000).toISOString();
const window = { fromMs: 100_000, toMs: 200_000 };
const device: DeviceItem = {
  workerId: 'w',
  workerName: 'w',
  workerLost: false,
  deviceId: 'ram',
  residentBytes: 0,
};
const resident = (residentId: string, more: Partial<ResidentItem>): ResidentItem => ({
  residentId,
  workerId: 'w',
  modelKey: 'm',
  phase: 'ready',
  memory: [{ deviceId: 'ram', bytes: 7, basis: 'measured' }],
  ...more,
});
const call = (callId: string, seconds: number, state: CallItem['state'] = 'completed'): CallItem => ({
  callId,
  modelKey: 'm',
  receivedAt: at(seconds),
  state,
  tokens: {},
  timings: {},
  stamps: {},
});
const lanes = (residents: ResidentItem[], calls: CallItem[] = []) =>
  lanesOf({ residents, calls, evictions: [], devices: [device] }, window)[0]!.lanes;

describe('the lanes of a timeline', () => {
  it('show a life from its load on, ready where it was, to its end', () => {
    const life = { loadStartedAt: at(120), readyAt: at(130), endedAt: at(150), endReason: 'evicted' };
    const lane = lanes([resident('a', life)])[0]!;
    expect(lane.lives[0]).toMatchObject({ from: 0.2, readyAt: 0.3, to: 0.5, goesOn: false, bytes: 7 });
    expect(lane.lives[0]!.end).toEqual({ kind: 'evicted', word: 'evicted' });
    expect(lane.lives[0]!.sentence).toBe('m: loaded in 10.0 s, evicted');
  });

  it('cut what began before and goes on after, and leave out what was over or is yet to come', () => {
    const found = lanes([
      resident('on', { loadStartedAt: at(10), readyAt: at(20) }),
      resident('past', { loadStartedAt: at(10), endedAt: at(50) }),
      resident('future', { loadStartedAt: at(300) }),
    ]);
    expect(found[0]!.lives).toHaveLength(1);
    expect(found[0]!.lives[0]).toMatchObject({ from: 0, readyAt: 0, to: 1, goesOn: true });
  });

  it('put calls beside the lives of their model, and tell those that failed', () => {
    const lane = lanes(
      [resident('a', { loadStartedAt: at(110) })],
      [call('1', 150), call('2', 180, 'failed'), call('3', 500)],
    );
    expect(lane[0]!.calls).toEqual([
      { at: 0.5, failed: false },
      { at: 0.8, failed: true },
    ]);
  });

  it('keep devices apart', () => {
    const card = { ...device, deviceId: 'gpu' };
    const found = lanesOf(
      {
        residents: [resident('a', { loadStartedAt: at(110) })],
        calls: [],
        evictions: [],
        devices: [card, device],
      },
      window,
    );
    expect(found.map(({ deviceId, lanes: own }) => [deviceId, own.length])).toEqual([
      ['gpu', 0],
      ['ram', 1],
    ]);
  });

  it.each([900, 3600, 6 * 3600, 86_400, 7 * 86_400])('have a few round ticks over %i s', (seconds) => {
    const span = { fromMs: 1_796_000_123_000, toMs: 1_796_000_123_000 + seconds * 1000 };
    const ticks = ticksOf(span, 8);
    expect(ticks.length).toBeGreaterThanOrEqual(2);
    expect(ticks.length).toBeLessThanOrEqual(9);
    expect(ticks.every((tick) => tick.ms % 60_000 === 0 && tick.at >= 0 && tick.at <= 1)).toBe(true);
  });
});

import { describe, expect, it } from 'vitest';
import { CARD, DAY_MS, loggedDay } from '../testing/logged-day.js';
import type { WhatIfChange } from './change.js';
import { reproduce } from './reproduce.js';
import { loggedCalls, reallyOf, simulateTime } from './run.js';
import { type TimeOfLog, TimeOfLogBuilder } from './time-of-log.js';

const GB = 1e9;
const day = loggedDay();
const timeOf = (fromMs = DAY_MS, toMs = DAY_MS + 86_400_000): TimeOfLog => {
  const builder = new TimeOfLogBuilder(fromMs, toMs);
  for (const recorded of day.events) builder.add(recorded);
  return builder.finish();
};
const under = (change: WhatIfChange, time = timeOf()) =>
  simulateTime(time, loggedCalls(time), change).figures;

describe('a stretch of the log under other hardware, settings and policies', () => {
  it('has decisions that the same code makes again', () => {
    const time = timeOf();
    const { decisions, identical, differences } = reproduce(time.decisions, time.calls);
    expect(differences).toEqual([]);
    expect(identical).toBe(decisions);
    expect(decisions).toBe(day.result.loads.length);
  });

  it('has decisions that are made again alike however often that is asked', () => {
    const time = timeOf();
    expect(reproduce(time.decisions, time.calls)).toEqual(reproduce(time.decisions, time.calls));
    expect(reproduce(time.decisions, time.calls).differences).toEqual([]);
  });

  it('is told as it really was', () => {
    const time = timeOf();
    const logged = loggedCalls(time);
    const really = reallyOf(time, logged, simulateTime(time, logged, {}).fleet);
    expect(really).toMatchObject({
      calls: day.scenario.calls.length,
      served: day.scenario.calls.length,
      refused: 0,
      loads: day.result.loads.length,
    });
    const seconds = day.result.loads.reduce((sum, l) => sum + (l.endMs - l.startMs) / 1000, 0);
    expect(really.loadSeconds).toBeCloseTo(seconds, 1);
  });

  it('is predicted as it was when nothing is changed', () => {
    const time = timeOf();
    const logged = loggedCalls(time);
    const { figures, fleet } = simulateTime(time, logged, {});
    const really = reallyOf(time, logged, fleet);
    expect(figures.loads).toBe(really.loads);
    expect(figures.evictions).toBe(really.evictions);
    expect(figures.loadSeconds / really.loadSeconds).toBeCloseTo(1, 2);
    expect(figures.toOutputSeconds.mean / really.toOutputSeconds.mean).toBeCloseTo(1, 2);
  });

  it('begins with the residents that were there', () => {
    const middle = day.scenario.calls[50]?.atMs ?? 0;
    const time = timeOf(middle);
    const logged = loggedCalls(time);
    const { figures, fleet } = simulateTime(time, logged, {});
    expect(fleet.there.length).toBeGreaterThan(0);
    const really = reallyOf(time, logged, fleet);
    expect(really.calls).toBeLessThan(day.scenario.calls.length);
    expect(Math.abs(figures.loads - really.loads)).toBeLessThanOrEqual(2);
  });

  it('loads less with a larger card, and no more than once each when all fit', () => {
    const was = under({});
    const larger = under({ devices: [{ name: CARD, bytes: 60 * GB }] });
    const all = under({ devices: [{ name: CARD, bytes: 100 * GB }] });
    expect(larger.loads).toBeLessThan(was.loads);
    expect(all.loads).toBe(day.scenario.models.length);
    expect(all.evictions).toBe(0);
    expect(all.toOutputSeconds.mean).toBeLessThan(was.toOutputSeconds.mean);
  });

  it('refuses what a smaller limit can never hold', () => {
    const figures = under({ vramMaxBytes: 20 * GB });
    const tooLarge = day.scenario.calls.filter(
      (c) => (day.scenario.models[c.model]?.cardBytes ?? 0) > 20 * GB,
    );
    expect(figures.refused).toBe(tooLarge.length);
    expect(figures.calls).toBe(figures.served + figures.refused);
  });

  it('spreads over another worker, which is a copy', () => {
    const figures = under({ moreWorkers: 1 });
    expect(figures.loads).toBeLessThan(under({}).loads);
    expect(figures.refused).toBe(0);
  });

  it.each(['lru', 'gdsf', 'classic'] as const)('is decided by %s instead', (evictionOrder) => {
    const figures = under({ settings: { evictionOrder } });
    expect(figures.served).toBe(day.scenario.calls.length);
    expect(figures.loads).toBeGreaterThanOrEqual(day.scenario.models.length);
  });

  it('lets idle residents go under a setting that says so', () => {
    expect(under({ settings: { idleUnloadSeconds: 5 } }).loads).toBeGreaterThan(under({}).loads);
  });
});

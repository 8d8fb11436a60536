import { describe, expect, it } from 'vitest';
import { GIB } from '#domain/units.js';
import { CARD, DAY_MS, loggedDay } from '../testing/logged-day.js';
import { type Figures, spreadOf } from './figures.js';
import { leastPrograms } from './least.js';
import { moreOf, reportOf, type ReportParts } from './report.js';
import { reproduce } from './reproduce.js';
import { loggedCalls, reallyOf, simulateTime } from './run.js';
import { TimeOfLogBuilder } from './time-of-log.js';

const builder = new TimeOfLogBuilder(DAY_MS, DAY_MS + 86_400_000);
for (const recorded of loggedDay({ calls: 60 }).events) builder.add(recorded);
const time = builder.finish();
const logged = loggedCalls(time);
const base = simulateTime(time, logged, {});
const really = reallyOf(time, logged, base.fleet);
const more = moreOf(time);
const change = more ? { more } : {};
const larger = simulateTime(time, logged, change).figures;

const report = (over: Partial<ReportParts> = {}) =>
  reportOf({
    time,
    logged,
    reproduced: reproduce(time.decisions, time.calls),
    really,
    asItWas: base.figures,
    changes: [{ change, figures: larger }],
    least: { atOnceSeconds: really.usualLoadSeconds / 1.4, delaySeconds: 60 },
    ...over,
  });
const few = (over: Partial<Figures>): Figures => ({ ...really, ...over });

describe('the report of a what-if', () => {
  it('looks at about half as much again of the device on which most was evicted', () => {
    expect(more).toEqual({ workerId: 'box', deviceId: CARD, bytes: 16 * GIB });
  });

  it('says how far from the least it was, and what more memory would have saved', () => {
    const { sentence, reproduced } = report();
    expect(reproduced.identical).toBe(reproduced.decisions);
    const saved = Math.round(100 * (1 - larger.loads / base.figures.loads));
    expect(saved).toBeGreaterThan(0);
    expect(sentence).toBe(
      `You were at 1.4 × the least loading possible; 16 GiB more would have saved ${saved} % of the loads.`,
    );
  });

  it('says plainly what is not known and what would not have helped', () => {
    expect(report({ least: { delaySeconds: 60, notComputed: 'it took too long' } }).sentence).toMatch(
      /^You loaded \d+ times; the least possible was not computed \(it took too long\); 16 GiB more/,
    );
    expect(report({ changes: [{ change, figures: base.figures }] }).sentence).toMatch(/saved no load\.$/);
    expect(report({ changes: [] }).sentence).toMatch(/nobody was evicted/);
    expect(report({ really: few({ loads: 0 }) }).sentence).toMatch(/^Nothing had to be loaded/);
    expect(report({ really: few({ calls: 0 }) }).sentence).toMatch(/^No call/);
  });

  it('notes that an engine is assumed with a card that no engine there could use', () => {
    const changes = [{ change: { devices: [{ name: 'new', bytes: GIB }] }, figures: larger }];
    const assumed = /No engine there can use a card/;
    expect(report({ changes }).notes.some((note) => assumed.test(note))).toBe(false);
    const workers = time.end.workers.map((worker) => ({
      ...worker,
      engines: worker.engines.map((engine) => ({ ...engine, capabilities: [] })),
    }));
    const without = { ...time, end: { ...time.end, workers } };
    expect(report({ time: without, changes }).notes.some((note) => assumed.test(note))).toBe(true);
    expect(report({ time: without }).notes.some((note) => assumed.test(note))).toBe(false);
  });

  it('is held against the bound that allows for waiting where it is below the other', () => {
    const waited = few({ usualLoadSeconds: 50 });
    const { least } = report({
      really: waited,
      least: { atOnceSeconds: 80, delayedSeconds: 40, delaySeconds: 60 },
    });
    expect(least.ratio).toBeCloseTo(1.25, 5);
  });

  it('asks for the least loading with every first load that nothing can spare', () => {
    const { atOnce, delayed, delaySeconds } = leastPrograms(time, logged, base);
    const first = logged.models.reduce((sum, key) => sum + base.fleet.usualLoadSeconds(key), 0);
    expect(atOnce.forcedSeconds).toBeCloseTo(first, 6);
    expect(delayed.forcedSeconds).toBeCloseTo(first, 6);
    expect(delaySeconds).toBe(60);
    expect(Math.max(...atOnce.cardRoom)).toBeLessThanOrEqual(40e9);
  });

  it('spreads by nearest rank', () => {
    expect(spreadOf([3, 1, 2, 4])).toEqual({ mean: 2.5, p50: 2, p99: 4 });
    expect(spreadOf([])).toEqual({ mean: 0, p50: 0, p99: 0 });
  });
});

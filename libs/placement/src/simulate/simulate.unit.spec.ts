import { deviceId, modelKey } from '#domain/ids.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SoonnessOf } from '../contract.js';
import { defaultSettings } from '../setting-levels.js';
import { berthFleetOf } from './berth-fleet.js';
import { BerthScheduler } from './berth-scheduler.js';
import type { Scenario, SimCall } from './model.js';
import { Random } from './random.js';
import { simulate, type SimulationResult } from './simulate.js';

const GB = 1e9;
const SLOTS = 2;
const CARD = deviceId('card');

/** Models of 6, 10, 14 … GB on one card, calls as drawn. */
function scenario(seed: number, over: { readonly cardGb?: number; readonly calls?: number } = {}): Scenario {
  const { cardGb = 40, calls = 60 } = over;
  const random = new Random(seed);
  const models = Array.from({ length: 6 }, (_, i) => ({
    modelKey: modelKey(`model-${i}`),
    fileBytes: (5 + 3 * i) * GB,
    cardBytes: (6 + 4 * i) * GB,
    slots: SLOTS,
    promptMsPerToken: 0.5,
    decodeMsPerToken: 20,
  }));
  let atMs = Date.parse('2026-01-05T00:00:00Z');
  const list = Array.from({ length: calls }, (_, index): SimCall => {
    atMs += Math.round(12_000 * random.exponential());
    return {
      index,
      model: random.below(models.length),
      atMs,
      promptTokens: 1 + random.below(2000),
      outputTokens: 1 + random.below(400),
    };
  });
  return {
    models,
    calls: list,
    boxes: [{ name: 'box', devices: [{ deviceId: CARD, totalBytes: cardGb * GB }], fileCacheBytes: 0 }],
    load: {
      disk: { startSeconds: 2, bytesPerSecond: 1.5 * GB },
      ram: { startSeconds: 0.6, bytesPerSecond: 12 * GB },
      noise: (model, nth) => 0.8 + 0.4 * new Random(model).fork(`${nth}`).next(),
    },
  };
}

const runBerth = (of: Scenario, soonnessOf?: SoonnessOf): SimulationResult =>
  simulate(
    of,
    (world) =>
      new BerthScheduler(world, {
        fleet: berthFleetOf(of, SLOTS),
        settings: defaultSettings,
        ...(soonnessOf ? { soonnessOf } : {}),
      }),
  );

describe('the simulated fleet under decide', () => {
  it('gives the same outcome for the same scenario', () => {
    expect(runBerth(scenario(3))).toEqual(runBerth(scenario(3)));
  });

  it('ends every call once, begins none before it came, and never fills a card over its size', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e6 }), fc.integer({ min: 26, max: 90 }), (seed, cardGb) => {
        const of = scenario(seed, { cardGb, calls: 40 });
        const { calls, loads } = runBerth(of);
        expect(calls.map((c) => c.call.index).sort((a, b) => a - b)).toEqual(of.calls.map((c) => c.index));
        for (const { call, startMs, firstByteMs, endMs, refused } of calls) {
          expect(refused).toBeUndefined();
          expect(startMs).toBeGreaterThanOrEqual(call.atMs);
          expect(firstByteMs).toBeGreaterThanOrEqual(startMs ?? Infinity);
          expect(endMs).toBeGreaterThanOrEqual(firstByteMs ?? Infinity);
        }
        const inOrder = [...loads].sort((a, b) => a.startMs - b.startMs);
        inOrder
          .slice(1)
          .forEach((load, i) => expect(load.startMs).toBeGreaterThanOrEqual(inOrder[i]?.endMs ?? 0));
      }),
      { numRuns: 10 },
    );
  });

  it('loads each model once when all of them fit', () => {
    const { loads } = runBerth(scenario(5, { cardGb: 200 }));
    expect(new Set(loads.map((l) => l.model)).size).toBe(loads.length);
  });

  it('refuses what no card can ever hold, and nothing else', () => {
    const { calls } = runBerth(scenario(7, { cardGb: 20 }));
    const refused = calls.filter((c) => c.refused);
    expect(refused.length).toBeGreaterThan(0);
    for (const { call, refused: why } of refused) {
      expect(call.model).toBeGreaterThan(3);
      expect(why?.code).toBe('model_cannot_fit');
    }
    expect(calls.filter((c) => c.call.model <= 3 && c.refused)).toEqual([]);
  });

  it('loads a model on another box too while calls wait for its slots, and on one box once', () => {
    const one = scenario(5, { cardGb: 200, calls: 40 });
    const [first] = one.calls;
    // Faster than two slots answer, and after the first calls all to one model.
    const calls = one.calls.map((call, i) => ({
      ...call,
      model: 0,
      atMs: (first?.atMs ?? 0) + 60_000 * Math.min(i, 5) + 2000 * i,
      outputTokens: 400,
    }));
    const boxes = ['one', 'two'].map((name) => ({
      name,
      devices: [{ deviceId: deviceId(name), totalBytes: 200 * GB }],
      fileCacheBytes: 0,
    }));
    const wait = ({ calls: all }: SimulationResult): number =>
      all.reduce((sum, { call, startMs = 0 }) => sum + startMs - call.atMs, 0);
    const alone = runBerth({ ...one, calls });
    const both = runBerth({ ...one, calls, boxes });
    expect(alone.loads.map((l) => l.box)).toEqual([0]);
    expect(both.loads.map((l) => l.box).sort()).toEqual([0, 1]);
    expect(wait(both)).toBeLessThan(wait(alone) / 2);
  });

  it('decides by how soon models are wanted where that is given, for the models that have residents', () => {
    const close = scenario(3);
    // So far apart that all residents are idle when the next call comes.
    const calls = close.calls.map((call, i) => ({ ...call, atMs: call.atMs + 120_000 * i }));
    const of = { ...close, calls };
    const asked = new Set<string>();
    const loadsOfSmallest = (soon: number): number =>
      runBerth(of, (key, nowMs) => {
        asked.add(key);
        expect(nowMs).toBeGreaterThanOrEqual(of.calls[0]?.atMs ?? Infinity);
        return key === 'model-0' ? soon : 0.5;
      }).loads.filter((l) => l.model === 0).length;
    expect(loadsOfSmallest(1)).toBeLessThan(loadsOfSmallest(0));
    expect(asked.size).toBe(of.models.length);
  });

  it('reads a file from RAM when the box still keeps it', () => {
    const of = scenario(11, { cardGb: 30 });
    const withRam = { ...of, boxes: of.boxes.map((box) => ({ ...box, fileCacheBytes: 200 * GB })) };
    const { loads } = runBerth(withRam);
    const seen = new Set<number>();
    for (const load of loads) {
      expect(load.from).toBe(seen.has(load.model) ? 'ram' : 'disk');
      seen.add(load.model);
    }
  });

  it('ends every call although loads fail that were thought to fit, and says so of those it refuses', () => {
    const of = scenario(13, { cardGb: 40 });
    const fleet = berthFleetOf(of, SLOTS, (model) => (of.models[model]?.cardBytes ?? 0) * 0.85);
    const { calls, loads } = simulate(
      of,
      (world) => new BerthScheduler(world, { fleet, settings: defaultSettings }),
    );
    expect(loads.some((l) => l.failed)).toBe(true);
    expect(calls).toHaveLength(of.calls.length);
    for (const { refused } of calls) if (refused) expect(refused.code).toBe('model_load_failed');
  });
});

import fc from 'fast-check';
import { deviceId, modelKey } from '#domain/ids.js';
import { loadSecondsFrom, type Scenario, type SimCall } from '#placement/simulate/model.js';
import { describe, expect, it } from 'vitest';
import { programAtOnce, programWithDelay } from '#placement/simulate/caching-program.js';
import { solve } from './bound.js';
import { GB, LOAD_RATES } from './hardware.js';
import { policies } from './policies.js';

interface Draw {
  readonly sizesGb: readonly number[];
  readonly calls: readonly number[];
  readonly gapsSeconds?: readonly number[];
  readonly cardGb: number;
  readonly fileCacheGb?: number;
}

function scenario({ sizesGb, calls, gapsSeconds, cardGb, fileCacheGb = 0 }: Draw): Scenario {
  let atMs = 0;
  return {
    models: sizesGb.map((gb, i) => ({
      modelKey: modelKey(`m${i}`),
      fileBytes: gb * GB,
      cardBytes: gb * GB,
      slots: 4,
      promptMsPerToken: 1,
      decodeMsPerToken: 1,
    })),
    calls: calls.map((model, index): SimCall => {
      atMs += 1000 * (gapsSeconds?.[index] ?? 100);
      return { index, model: model % sizesGb.length, atMs, promptTokens: 10, outputTokens: 10 };
    }),
    boxes: [
      {
        name: 'box',
        devices: [{ deviceId: deviceId('card'), totalBytes: cardGb * GB }],
        fileCacheBytes: fileCacheGb * GB,
      },
    ],
    load: { ...LOAD_RATES, noise: () => 1 },
  };
}

/** Least load seconds with whole models, by trying every choice of what is kept. */
function bruteForce({ models, calls, boxes, load }: Scenario): number {
  const room = boxes[0]?.devices[0]?.totalBytes ?? 0;
  const cost = (m: number): number => loadSecondsFrom(load, 'disk', models[m]?.fileBytes ?? 0);
  const bytes = (set: number): number =>
    models.reduce((sum, m, i) => sum + (set & (1 << i) ? m.cardBytes : 0), 0);
  let states = new Map<number, number>([[0, 0]]);
  for (const { model } of calls) {
    const next = new Map<number, number>();
    for (const [set, spent] of states) {
      const seconds = spent + (set & (1 << model) ? 0 : cost(model));
      const others = set & ~(1 << model);
      for (let kept = others; ; kept = (kept - 1) & others) {
        const now = kept | (1 << model);
        if (bytes(now) <= room) next.set(now, Math.min(next.get(now) ?? Infinity, seconds));
        if (kept === 0) break;
      }
    }
    states = next;
  }
  return Math.min(...states.values());
}

const sequence = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 14 });

describe('the lower bound', () => {
  it('is the best of all choices when the models are of one size', async () => {
    await fc.assert(
      fc.asyncProperty(sequence, fc.integer({ min: 1, max: 4 }), async (calls, places) => {
        const of = scenario({ sizesGb: [6, 6, 6, 6, 6], calls, cardGb: 6 * places });
        expect(await solve(programAtOnce(of))).toBeCloseTo(bruteForce(of), 4);
      }),
      { numRuns: 25 },
    );
  });

  it('is never above the best of all choices when they are of several sizes', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 5, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(sizes, sequence, fc.integer({ min: 12, max: 30 }), async (sizesGb, calls, cardGb) => {
        const of = scenario({ sizesGb, calls, cardGb });
        const best = bruteForce(of);
        const bound = await solve(programAtOnce(of));
        expect(bound).toBeLessThanOrEqual(best + 1e-4);
        // A share of a model is worth at most a model: the two are not far apart on so few calls.
        expect(bound).toBeGreaterThan(0.3 * best);
      }),
      { numRuns: 25 },
    );
  });

  it('is what each model takes once, and no more, when everything fits', async () => {
    const of = scenario({ sizesGb: [3, 6, 9], calls: [0, 1, 2, 0, 1, 2, 1], cardGb: 18 });
    expect(await solve(programAtOnce(of))).toBeCloseTo(3 * 2 + 18 / 1.5, 6);
  });

  it('counts a reload from RAM at what that takes', async () => {
    const draw = { sizesGb: [6, 6], calls: [0, 1, 0, 1, 0], cardGb: 6 };
    const disk = 2 + 6 / 1.5;
    const ram = 0.6 + 6 / 12;
    expect(await solve(programAtOnce(scenario(draw)))).toBeCloseTo(5 * disk, 6);
    expect(await solve(programAtOnce(scenario({ ...draw, fileCacheGb: 12 })))).toBeCloseTo(
      2 * disk + 3 * ram,
      6,
    );
  });

  it('is lower when calls may wait, and counts each model once when all may wait for all', async () => {
    const calls = Array.from({ length: 60 }, (_, i) => (i * 7) % 5);
    const of = scenario({ sizesGb: [6, 6, 6, 6, 6], calls, cardGb: 18 });
    const atOnce = await solve(programAtOnce(of));
    for (const seconds of [0.001, 150]) {
      const delayed = await solve(programWithDelay(of, seconds));
      expect(delayed).toBeLessThanOrEqual(atOnce + 1e-6);
      expect(delayed).toBeGreaterThan(5 * 6);
    }
    expect(await solve(programWithDelay(of, 1e5))).toBeCloseTo(5 * 6, 6);
  });

  it('is below the load seconds of every policy that makes calls wait no longer than it allows', async () => {
    const gapsSeconds = Array.from({ length: 120 }, (_, i) => 1 + ((i * 37) % 23));
    const calls = Array.from({ length: 120 }, (_, i) => (i * i) % 5);
    for (const fileCacheGb of [0, 20]) {
      const of = scenario({ sizesGb: [4, 6, 8, 10, 12], calls, gapsSeconds, cardGb: 20, fileCacheGb });
      for (const policy of policies()) {
        const { metrics } = policy.run(of);
        if (metrics.refused > 0) continue;
        const bound = await solve(programWithDelay(of, metrics.longestWaitSeconds + 0.001));
        expect(bound, policy.name).toBeLessThanOrEqual(metrics.loadSeconds + 1e-6);
      }
    }
  });
});

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { deviceId, modelKey, residentId } from '#domain/ids.js';
import type { EvictionCandidate } from './eviction-candidate.js';
import { cheapestSet } from './eviction-exact.js';
import { cheapestOnOne, worthOfByte } from './eviction-single.js';

const CARD = deviceId('gpu-a');

const candidates = fc.array(
  fc.record({
    bytes: fc.integer({ min: 1, max: 60 }),
    loss: fc.integer({ min: 0, max: 40 }),
    idle: fc.integer({ min: 0, max: 3 }),
  }),
  { minLength: 1, maxLength: 14 },
);

const made = (drawn: readonly { bytes: number; loss: number; idle: number }[]): EvictionCandidate[] =>
  drawn.map(({ bytes, loss, idle }, i) => ({
    residentId: residentId(`r${String(i).padStart(2, '0')}`),
    modelKey: modelKey(`m${i}`),
    band: 0,
    frees: new Map([[CARD, bytes]]),
    lossSeconds: loss,
    reloadSeconds: loss,
    idleSeconds: idle,
    calls: 0,
    agedCalls: 0,
    unknownSize: false,
  }));

const bytes = (set: readonly EvictionCandidate[]): number =>
  set.reduce((sum, c) => sum + (c.frees.get(CARD) ?? 0), 0);

it('on one device the short search finds what the general one finds, and nobody too many', () => {
  fc.assert(
    fc.property(candidates, fc.integer({ min: 1, max: 200 }), (drawn, wanted) => {
      const list = made(drawn);
      const deficit = Math.min(wanted, bytes(list));
      const found = cheapestOnOne(CARD, deficit, list, 100_000);
      const worth = worthOfByte(CARD, list);
      const net = (c: EvictionCandidate): number => c.lossSeconds - worth * bytes([c]);
      const loss = (set: readonly EvictionCandidate[]): number => set.reduce((sum, c) => sum + net(c), 0);
      const rate = (c: EvictionCandidate): number => net(c) / Math.min(deficit, bytes([c]));
      const byRate = [...list].sort((a, b) => rate(a) - rate(b));
      const general = cheapestSet(new Map([[CARD, deficit]]), byRate, list, 100_000, net);
      expect(found.exact).toBe(true);
      expect(loss(found.victims)).toBeCloseTo(loss(general.set), 6);
      expect(bytes(found.victims)).toBeGreaterThanOrEqual(deficit);
      for (const one of found.victims)
        expect(bytes(found.victims.filter((c) => c !== one))).toBeLessThan(deficit);
    }),
    { numRuns: 1000 },
  );
});

it('a search that ends at its limit keeps a set that fits, and says that it may not be the best', () => {
  const list = made(
    Array.from({ length: 20 }, (_, i) => ({
      bytes: 50 + ((i * 37) % 41),
      loss: 20 + ((i * 53) % 29),
      idle: 0,
    })),
  );
  const found = cheapestOnOne(CARD, 700, list, 30);
  expect(found.exact).toBe(false);
  expect(bytes(found.victims)).toBeGreaterThanOrEqual(700);
});

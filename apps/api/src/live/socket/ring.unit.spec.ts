import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LiveChange } from '#domain/wire/index.js';
import { Ring } from './ring.js';

const change = (commit: number, n: number): LiveChange =>
  ({ topic: 'pulls', position: String(commit), item: { pullId: `${commit}-${n}` } }) as unknown as LiveChange;

describe('the ring of changes', () => {
  it('gives what came after any position that it still knows, whole events only, and says when it does not know', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 60 }),
        fc.integer({ min: 4, max: 20 }),
        (sizes, most) => {
          const ring = new Ring(0n, most);
          const all = sizes.map((size, n) => ({ commit: BigInt((n + 1) * 10), size }));
          for (const { commit, size } of all)
            ring.add(
              commit,
              Array.from({ length: size }, (_, n) => change(Number(commit), n)),
            );
          for (const since of [0n, ...all.map(({ commit }) => commit), 5n, 15n]) {
            const got = ring.after(since);
            if (!got) continue;
            const wanted = all
              .filter(({ commit }) => commit > since)
              .flatMap(({ commit, size }) => Array.from({ length: size }, (_, n) => `${commit}-${n}`));
            expect(
              got.map(({ text }) => (JSON.parse(text) as { item: { pullId: string } }).item.pullId),
            ).toEqual(wanted);
          }
          // The end is always known.
          expect(ring.after(BigInt(all.length * 10))).toEqual([]);
        },
      ),
    );
  });
});

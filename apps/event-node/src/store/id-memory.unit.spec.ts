import { expect, test } from 'vitest';
import fc from 'fast-check';
import { IdMemory } from './id-memory.js';
import { KnownIds, type IdRow } from './known-ids.js';

const uuid = (n: number, high = 0) =>
  `${high.toString(16).padStart(8, '0')}-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;

test('the newest ids are known and the oldest forgotten, like a map with a bound', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      // Few high words and low words: many ids share a bucket.
      fc.array(fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 3 })), { maxLength: 300 }),
      (capacity, ids) => {
        const memory = new IdMemory(capacity);
        ids.forEach(([n, high], i) => memory.remember(uuid(n, high * 0x10000), 1, i, i * 10));
        const window = ids.slice(-capacity);
        for (let n = 0; n <= 60; n++) {
          for (let high = 0; high <= 3; high++) {
            const at = window.findLastIndex(([a, b]) => a === n && b === high);
            const found = memory.find(uuid(n, high * 0x10000));
            if (at < 0) expect(found).toBeUndefined();
            else {
              const index = ids.length - window.length + at;
              expect(found).toEqual({ sid: 1, revision: index, position: index * 10 });
            }
          }
        }
      },
    ),
  );
});

test('ids of a log that is opened are found before all of them are loaded', () => {
  let asked = 0;
  const total = 10_000;
  const below = {
    get: () => undefined,
    all: ([position, limit]: readonly unknown[]): IdRow[] => {
      asked++;
      const from = Math.min(Number(position), total) - 1;
      return Array.from({ length: Math.min(Number(limit), from + 1) }, (_, i) => [
        from - i,
        7,
        from - i,
        Buffer.from(uuid(from - i)),
      ]);
    },
  };
  const ids = new KnownIds(below, 6000);
  expect(asked).toBe(1);
  expect(ids.find(uuid(9990), 7)).toMatchObject({ position: 9990 });
  expect(asked).toBe(1);
  expect(ids.find(uuid(4500), 7)).toMatchObject({ position: 4500 });
  expect(ids.find(uuid(3000), 7)).toBeUndefined();
  expect(ids.find(uuid(4500), 8)).toBeUndefined();
  ids.remember(uuid(4500), 8, 0, 20_000);
  expect(ids.find(uuid(4500), 8)).toMatchObject({ position: 20_000 });
  // The later stream wins.
  expect(ids.find(uuid(4500), 7)).toBeUndefined();
  ids.stop();
});

test('of a log that is opened the ids of the newest 200,000 events are known, and of those written since', () => {
  const total = 200_100;
  const below = {
    get: () => undefined,
    all: ([position, limit]: readonly unknown[]): IdRow[] => {
      const from = Math.min(Number(position), total) - 1;
      return Array.from({ length: Math.min(Number(limit), from + 1) }, (_, i) => [
        from - i,
        7,
        from - i,
        Buffer.from(uuid(from - i)),
      ]);
    },
  };
  const ids = new KnownIds(below);
  expect(ids.find(uuid(total - 200_000), 7)).toMatchObject({ revision: 100 });
  expect(ids.find(uuid(total - 200_001), 7)).toBeUndefined();
  const write = (from: number, to: number) => {
    for (let n = from; n < to; n++) ids.remember(uuid(n), 7, n, n);
  };
  write(total, total + 199_999);
  expect(ids.find(uuid(100), 7)).toMatchObject({ revision: 100 });
  write(total + 199_999, total + 200_000);
  expect(ids.find(uuid(total), 7)).toMatchObject({ revision: total });
  expect(ids.find(uuid(total - 1), 7)).toBeUndefined();
  write(total + 200_000, total + 200_001);
  expect(ids.find(uuid(total), 7)).toBeUndefined();
  expect(ids.find(uuid(total + 1), 7)).toMatchObject({ revision: total + 1 });
  expect(ids.size).toBe(200_000);
  ids.stop();
});

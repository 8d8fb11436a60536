import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatBytes, formatSeconds, GIB, parseBytes } from './units.js';

describe('sizes', () => {
  it.each([
    ['1073741824', GIB],
    ['1GiB', GIB],
    ['1.5 GiB', 1.5 * GIB],
    ['24 GB', 24e9],
    ['900M', 900 * 1024 ** 2],
    ['900MB', 900e6],
    ['2t', 2 * 1024 ** 4],
    ['64kib', 65_536],
  ])('reads %s', (text, bytes) => {
    expect(parseBytes(text)).toBe(bytes);
  });

  it.each(['', 'GiB', '-1', '1,5GiB', 'lots', '1 PB', '1e9'])('does not guess at %s', (text) => {
    expect(parseBytes(text)).toBeUndefined();
  });

  it('reads any whole count back', () => {
    fc.assert(fc.property(fc.nat({ max: Number.MAX_SAFE_INTEGER }), (n) => parseBytes(String(n)) === n));
  });

  it('is shown in the unit that a person compares in', () => {
    expect([18 * 1024, 312.4 * 1024 ** 2, 1.5 * GIB, 12].map(formatBytes)).toEqual([
      '18 KiB',
      '312.4 MiB',
      '1.50 GiB',
      '12 B',
    ]);
    expect([0.84, 42.4, 200].map(formatSeconds)).toEqual(['0.8 s', '42 s', '3 min 20 s']);
  });
});

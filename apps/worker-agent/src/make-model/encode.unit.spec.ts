import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { encodeValues, tensorBytes, toHalf } from './encode.js';

const fromHalf = (h: number): number => {
  const sign = h & 0x8000 ? -1 : 1;
  const exponent = (h >> 10) & 31;
  const mantissa = h & 0x3ff;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  if (exponent === 31) return mantissa === 0 ? sign * Infinity : NaN;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
};

describe('half precision', () => {
  test.each([
    [0, 0],
    [1, 0x3c00],
    [-2, 0xc000],
    [65504, 0x7bff],
    [1e6, 0x7c00],
    [2 ** -24, 1],
    [2 ** -14, 0x0400],
    [Infinity, 0x7c00],
  ])('%d is stored as %d', (value, bits) => {
    expect(toHalf(value)).toBe(bits);
  });

  test('a stored value is within half a step of the number', () => {
    fc.assert(
      fc.property(fc.float({ min: -60000, max: 60000, noNaN: true }), (value) => {
        const step = Math.max(2 ** -24, 2 ** (Math.floor(Math.log2(Math.abs(value) || 1)) - 10));
        expect(Math.abs(fromHalf(toHalf(value)) - value)).toBeLessThanOrEqual(step / 2);
      }),
    );
  });
});

/** Scales are halves; the smallest of them lie this far from what they stand for. */
const SCALE_ERROR = 2 ** -25;

describe('blocks', () => {
  const values = fc
    .array(fc.float({ min: -4, max: 4, noNaN: true }), { minLength: 32, maxLength: 32 })
    .map((v) => Float32Array.from(v));

  test('Q8_0 keeps every value within a step of its scale', () => {
    fc.assert(
      fc.property(values, (block) => {
        const stored = encodeValues('Q8_0', block);
        expect(stored).toHaveLength(34);
        const scale = fromHalf(stored.readUInt16LE(0));
        const largest = Math.max(...block.map(Math.abs));
        for (const [i, v] of block.entries()) {
          expect(Math.abs(stored.readInt8(2 + i) * scale - v)).toBeLessThanOrEqual(
            largest / 127 + SCALE_ERROR * 127,
          );
        }
      }),
    );
  });

  test('Q4_0 keeps every value within a step of its scale', () => {
    fc.assert(
      fc.property(values, (block) => {
        const stored = encodeValues('Q4_0', block);
        expect(stored).toHaveLength(18);
        const scale = fromHalf(stored.readUInt16LE(0));
        const largest = Math.max(...block.map(Math.abs));
        for (const [i, v] of block.entries()) {
          const byte = stored[2 + (i % 16)]!;
          const q = (i < 16 ? byte & 15 : byte >> 4) - 8;
          expect(Math.abs(q * scale - v)).toBeLessThanOrEqual(largest / 8 + 1e-3);
        }
      }),
    );
  });

  test('a row that is no multiple of the block is refused with its length', () => {
    expect(() => tensorBytes('Q8_0', [33, 2])).toThrow('33');
    expect(tensorBytes('Q8_0', [64, 2])).toBe(136);
    expect(tensorBytes('F16', [5, 3])).toBe(30);
  });
});

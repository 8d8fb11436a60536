import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FactValue, ParsedHeader } from './file-facts.js';
import { BadHeader, GgufHeader } from './gguf-header.js';
import { headerBytes, sampleHeader, type SampleHeader, type SampleValue } from './gguf-samples.js';

/** Reads as a file is read: pieces of one size, longer ones when an item does not fit. */
function read(bytes: Buffer, pieceBytes = bytes.length, fileBytes = bytes.length): ParsedHeader {
  const header = new GgufHeader(fileBytes);
  let size = Math.max(1, pieceBytes);
  for (let steps = 0; ; steps++) {
    // Each step goes on or doubles: none of them may be in vain for ever.
    if (steps > bytes.length + 64) throw new Error('it does not come to an end');
    if (!header.take(bytes.subarray(header.at, header.at + size))) size *= 2;
    if (header.done) return header.result;
  }
}

const kept = (key: string, value: SampleValue): FactValue => {
  if (value.type !== 9)
    return typeof value.value === 'string' ? value.value.slice(0, 256) : plain(value.value);
  if (key.startsWith('tokenizer.') || value.of === 9) return { length: value.value.length };
  return value.value.map((item) => {
    if (item.type === 9) throw new Error('no list lies in a flat one');
    return typeof item.value === 'string' ? item.value.slice(0, 256) : plain(item.value);
  });
};
const plain = (value: number | bigint | boolean) => (typeof value === 'bigint' ? Number(value) : value);

const expected = ({ pairs, tensors }: SampleHeader) => ({
  // Read and not kept: it would not become a key of its own.
  values: Object.fromEntries(
    pairs.filter(([key]) => key !== '__proto__').map(([key, value]) => [key, kept(key, value)]),
  ),
  tensors: tensors.map(({ name, shape, type, offset }) => ({
    name,
    shape: shape.map(Number),
    type,
    offset: Number(offset),
  })),
});

test('what was written is read, whatever pieces the file comes in', () => {
  fc.assert(
    fc.property(sampleHeader, fc.integer({ min: 1, max: 400 }), (sample, pieceBytes) => {
      const bytes = headerBytes(sample);
      const { values, tensors, dataStart } = read(bytes, pieceBytes);
      expect({ values, tensors }).toEqual(expected(sample));
      expect(dataStart).toBe(Math.ceil(bytes.length / 32) * 32);
    }),
  );
});

describe('a file that is not whole', () => {
  test('cut anywhere in its header, it is told so, and never read as something else', () => {
    fc.assert(
      fc.property(sampleHeader, fc.nat(), fc.integer({ min: 1, max: 400 }), (sample, at, pieceBytes) => {
        const bytes = headerBytes(sample);
        const cut = bytes.subarray(0, at % bytes.length);
        expect(() => read(cut, pieceBytes)).toThrow(BadHeader);
      }),
    );
  });

  test('with any bytes changed, it is read or refused in words, in work that its size bounds', () => {
    const change = fc.tuple(fc.nat(), fc.constantFrom(0, 1, 0x7f, 0x80, 0xff));
    fc.assert(
      fc.property(
        sampleHeader,
        fc.array(change, { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 400 }),
        (sample, changes, pieceBytes) => {
          const bytes = headerBytes(sample);
          for (const [at, value] of changes) bytes[4 + (at % (bytes.length - 4))] = value;
          try {
            const { tensors, dataStart } = read(bytes, pieceBytes);
            expect(tensors.length * 24).toBeLessThanOrEqual(bytes.length);
            expect(dataStart).toBeGreaterThanOrEqual(24);
          } catch (error) {
            expect(error).toBeInstanceOf(BadHeader);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test.each<[what: string, patch: (bytes: Buffer) => void, words: RegExp]>([
    ['an impossible version', (b) => b.writeUInt32LE(0xee, 4), /version 238/],
    ['the first version', (b) => b.writeUInt32LE(1, 4), /version 1/],
    ['the other byte order', (b) => b.writeUInt32BE(3, 4), /big-endian/],
    [
      'more tensors than bytes',
      (b) => b.writeBigUInt64LE(2n ** 63n, 8),
      /claims 9223372036854776000 tensors/,
    ],
    ['more keys than bytes', (b) => b.writeBigUInt64LE(1000n, 16), /1000 keys in \d+ bytes/],
    ['a key longer than the file', (b) => b.writeBigUInt64LE(2n ** 40n, 24), /text of 1099511627776 bytes/],
    ['a value of no type', (b) => b.writeUInt32LE(13, 33), /type 13/],
  ])('%s is refused', (_what, patch, words) => {
    const bytes = headerBytes({ pairs: [['k', { type: 4, value: 7 }]], tensors: [] });
    patch(bytes);
    expect(() => read(bytes)).toThrow(words);
  });

  test('a list that claims more than the file holds is refused before any of it is kept', () => {
    const bytes = headerBytes({ pairs: [['k', { type: 9, of: 0, value: [] }]], tensors: [] });
    bytes.writeBigUInt64LE(2n ** 50n, bytes.length - 8);
    expect(() => read(bytes)).toThrow(/list of 1125899906842624 values/);
  });

  test('lists in lists are followed to a depth, and no further', () => {
    let value: SampleValue = { type: 9, of: 4, value: [] };
    for (let i = 0; i < 20; i++) value = { type: 9, of: 9, value: [value] };
    expect(() => read(headerBytes({ pairs: [['k', value]], tensors: [] }))).toThrow(/deep/);
  });
});

test('a key that would change what the values are made of is left out', () => {
  const pairs = [
    ['__proto__', { type: 9, of: 4, value: [] }] as const,
    ['k', { type: 4, value: 7 }] as const,
  ];
  const { values } = read(headerBytes({ pairs, tensors: [] }));
  expect(Object.getPrototypeOf(values)).toBe(Object.prototype);
  expect(values).toEqual({ k: 7 });
});

test('a vocabulary is stepped over: bytes of numbers are not even asked for', () => {
  const numbers = Array.from({ length: 50_000 }, () => ({ type: 6 as const, value: 0.5 }));
  const bytes = headerBytes({
    pairs: [
      ['tokenizer.ggml.scores', { type: 9, of: 6, value: numbers }],
      ['general.architecture', { type: 8, value: 'llama' }],
    ],
    tensors: [],
  });
  const header = new GgufHeader(bytes.length);
  let asked = 0;
  while (!header.done) {
    const piece = bytes.subarray(header.at, header.at + 256);
    asked += piece.length;
    header.take(piece);
  }
  expect(header.result.values).toEqual({
    'tokenizer.ggml.scores': { length: 50_000 },
    'general.architecture': 'llama',
  });
  expect(asked).toBeLessThanOrEqual(512);
});

test('tools and thought are seen in the whole of a chat template, of which little is kept', () => {
  const value = `${' '.repeat(5000)}{% if tools %}<think>`;
  const { template, values } = read(
    headerBytes({ pairs: [['tokenizer.chat_template', { type: 8, value }]], tensors: [] }),
    64,
  );
  expect(template).toEqual({ tools: true, reasoning: true });
  expect(values['tokenizer.chat_template']).toHaveLength(256);
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodedBytes } from './codec.js';
import { formatEntries, formatTexts, parseEntries, type SpoolEntry } from './spool-format.js';

const entry: fc.Arbitrary<SpoolEntry> = fc.record({
  stream: fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }),
  event: fc.record({
    id: fc.uuid(),
    type: fc.constantFrom('CallStarted', 'CallFinished'),
    data: fc.json().map((j) => Buffer.from(j)),
    metadata: fc.json().map((j) => Buffer.from(j)),
  }),
});
const entries = fc.array(entry, { minLength: 1, maxLength: 8 });

const at = <T>(list: readonly T[], index: number): T => {
  const item = list[index];
  if (item === undefined) throw new Error(`nothing at ${index}`);
  return item;
};

describe('a spool file', () => {
  it('gives back what was put in, in order', () => {
    fc.assert(
      fc.property(entries, (list) => {
        expect(parseEntries(formatEntries(list))).toEqual({ entries: list, damaged: [] });
      }),
    );
  });

  it('is the same from text as from bytes, and what goes to the log are views into it', () => {
    fc.assert(
      fc.property(entries, (list) => {
        const texts = list.map(({ stream, event }) => ({
          stream,
          event: { ...event, data: event.data.toString(), metadata: event.metadata.toString() },
          dataBytes: event.data.length,
          metadataBytes: event.metadata.length,
        }));
        const formatted = formatTexts(texts);
        expect(formatted.bytes.equals(formatEntries(list))).toBe(true);
        expect(formatted.entries.map(({ stream, event }) => ({ stream, event }))).toEqual(list);
        expect(formatted.entries.map((each) => each.eventBytes)).toEqual(
          list.map((e) => encodedBytes(e.event)),
        );
      }),
    );
  });

  it('takes any name of a stream, line separators that JSON leaves as they are among them', () => {
    const odd: SpoolEntry = {
      stream: 'calls-a b\u2028c\n"d"',
      event: {
        id: '0b3c9c52-8f0e-4f2e-9a55-111111111111',
        type: 'CallStarted',
        data: Buffer.from('{}'),
        metadata: Buffer.from('{}'),
      },
    };
    expect(parseEntries(formatEntries([odd]))).toEqual({ entries: [odd], damaged: [] });
  });

  it('cut anywhere gives every whole record before the cut, and says what is damaged', () => {
    fc.assert(
      fc.property(entries, fc.nat(), (list, where) => {
        const whole = formatEntries(list);
        const cut = where % whole.length;
        const parsed = parseEntries(whole.subarray(0, cut));
        const ends = list.map((_, i) => formatEntries(list.slice(0, i + 1)).length);
        const sound = ends.filter((end) => end <= cut).length;
        expect(parsed.entries).toEqual(list.slice(0, sound));
        const from = sound === 0 ? 0 : at(ends, sound - 1);
        expect(parsed.damaged).toEqual(from < cut ? [{ from, to: cut }] : []);
      }),
    );
  });

  it('keeps the record after one whose last line feed was damaged', () => {
    const list = fc.sample(entries, { numRuns: 20, seed: 1 }).filter((l) => l.length > 1);
    for (const some of list) {
      const bytes = formatEntries(some);
      bytes.writeUInt8(0x21, formatEntries(some.slice(0, 1)).length - 1);
      expect(parseEntries(bytes).entries).toEqual(some.slice(1));
    }
    expect(list.length).toBeGreaterThan(5);
  });

  it('with one flipped byte loses the record that it is in and no other', () => {
    fc.assert(
      fc.property(entries, fc.nat(), fc.integer({ min: 1, max: 255 }), (list, where, flip) => {
        const bytes = formatEntries(list);
        const position = where % bytes.length;
        bytes.writeUInt8(bytes.readUInt8(position) ^ flip, position);
        const hit = list.findIndex((_, i) => position < formatEntries(list.slice(0, i + 1)).length);
        const parsed = parseEntries(bytes);
        expect(parsed.entries).toEqual(list.filter((_, i) => i !== hit));
        expect(parsed.damaged).toHaveLength(1);
      }),
    );
  });
});

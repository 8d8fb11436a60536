import fc from 'fast-check';
import type { Token } from 'node-llama-cpp';
import { describe, expect, it } from 'vitest';
import { type Detokenizer, StopStrings, TokenText } from './text-stream.js';

/** A vocabulary of bytes, as every SentencePiece model has, with control tokens above them. */
const CONTROL = new Map([
  [300, '<|end|>'],
  [301, '<think>'],
]);
const bytesModel: Detokenizer = {
  isSpecialToken: (token) => CONTROL.has(Number(token)),
  detokenize: (tokens, special) =>
    special === true
      ? tokens.map((token) => CONTROL.get(Number(token)) ?? '').join('')
      : Buffer.from(tokens.map(Number)).toString('utf8'),
};
const tokensOf = (text: string): Token[] => [...Buffer.from(text, 'utf8')].map((byte) => byte as Token);

describe('text from tokens', () => {
  it('never cuts a character, wherever the tokens cut it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 30 }), (text) => {
        const out = new TokenText(bytesModel);
        const pieces = tokensOf(text).map((token) => out.push(token));
        pieces.push(out.flush());
        expect(pieces.join('')).toBe(Buffer.from(text, 'utf8').toString('utf8'));
        for (const piece of pieces) if (!text.includes('\ufffd')) expect(piece).not.toContain('\ufffd');
      }),
    );
  });

  it('shows the marks of reasoning and hides other control tokens', () => {
    const out = new TokenText(bytesModel);
    expect([300, 301].map((token) => out.push(token as Token))).toEqual(['', '<think>']);
  });

  it('gives up on bytes that are no character', () => {
    const out = new TokenText(bytesModel);
    const pieces = [0xf0, 0xff, 0xff, 0xff].map((byte) => out.push(byte as Token));
    expect(pieces.join('')).toContain('\ufffd');
  });
});

describe('stop strings', () => {
  it('cut the text at the first of them, however it comes in pieces', () => {
    const stop = fc.string({ minLength: 1, maxLength: 4, unit: fc.constantFrom('a', 'b', 'c') });
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 5, unit: fc.constantFrom('a', 'b', 'c') }), { maxLength: 12 }),
        fc.array(stop, { minLength: 1, maxLength: 3 }),
        (pieces, stops) => {
          const whole = pieces.join('');
          const firsts = stops.map((text) => whole.indexOf(text)).filter((at) => at >= 0);
          const filter = new StopStrings(stops);
          let out = '';
          let stopped = false;
          for (const piece of pieces) {
            const got = filter.push(piece);
            out += got.text;
            stopped = got.stopped;
            if (stopped) break;
          }
          if (!stopped) out += filter.flush();
          expect(stopped).toBe(firsts.length > 0);
          if (!stopped) expect(out).toBe(whole);
          else {
            // Pieces end a search: what is cut is a beginning of the text without any stop string.
            expect(whole.startsWith(out)).toBe(true);
            expect(stops.some((text) => out.includes(text))).toBe(false);
            expect(stops.some((text) => whole.slice(out.length).startsWith(text))).toBe(true);
          }
        },
      ),
    );
  });

  it('hold back only what may still become one', () => {
    const filter = new StopStrings(['END']);
    expect(filter.push('the E')).toEqual({ text: 'the ', stopped: false });
    expect(filter.push('Nd')).toEqual({ text: 'ENd', stopped: false });
    expect(filter.push(' EN')).toEqual({ text: ' ', stopped: false });
    expect(filter.flush()).toBe('EN');
  });
});

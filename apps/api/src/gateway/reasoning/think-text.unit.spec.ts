import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Parted, partText, ThinkText } from './think-text.js';

/** The parts when the text comes in these pieces. */
function inPieces(pieces: readonly string[]): Parted {
  const reader = new ThinkText();
  const parts = [...pieces.map((piece) => reader.push(piece)), reader.flush()];
  return {
    reasoning: parts.map(({ reasoning }) => reasoning).join(''),
    text: parts.map(({ text }) => text).join(''),
  };
}

const piece = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom('<think>', '</think>', '<THINKING>', '</Thinking>', '<thin', '</', '<'),
  },
  { weight: 3, arbitrary: fc.constantFrom(' ', '\n\n', '          ', 'a < b', 'No.', 'think>', '日本') },
  { weight: 1, arbitrary: fc.string({ maxLength: 12 }) },
);

describe('parting a message into reasoning and answer', () => {
  it.each([
    ['<think>why</think>because', 'why', 'because'],
    ['<THINKING>why</Thinking>\n\nbecause', 'why', 'because'],
    ['\n<think>a</think>\n<think>b</think>c', 'ab', 'c'],
    ['<think>never closed', 'never closed', ''],
    ['<think>a </thin', 'a </thin', ''],
    ['<think></think>answer', '', 'answer'],
    ['no <think>tag</think> here', '', 'no <think>tag</think> here'],
    ['<thinker>no</thinker>', '', '<thinker>no</thinker>'],
    ['  <thin', '', '  <thin'],
    ['\n\n', '', '\n\n'],
    ['', '', ''],
  ])('%j', (whole, reasoning, text) => {
    expect(partText(whole)).toEqual({ reasoning, text });
    expect(inPieces(whole.split(/(?:)/u))).toEqual({ reasoning, text });
  });

  it('gives the same parts however the text was cut', () => {
    fc.assert(
      fc.property(fc.array(piece), fc.array(fc.nat({ max: 5 })), (written, cuts) => {
        const whole = written.join('');
        const pieces: string[] = [];
        let at = 0;
        for (const cut of cuts) {
          pieces.push(whole.slice(at, at + cut));
          at += cut;
        }
        pieces.push(whole.slice(at));
        expect(inPieces(pieces)).toEqual(partText(whole));
      }),
    );
  });

  it('holds back at most ten characters of a tag', () => {
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const reader = new ThinkText();
        for (const each of pieces) reader.push(each);
        const { reasoning, text } = reader.flush();
        expect((reasoning + text).trimStart().length).toBeLessThanOrEqual(10);
      }),
    );
  });

  it('leaves a message alone that opens with anything else', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!/^\s*<think(ing)?>/i.test(text));
        expect(partText(text)).toEqual({ reasoning: '', text });
      }),
    );
  });
});

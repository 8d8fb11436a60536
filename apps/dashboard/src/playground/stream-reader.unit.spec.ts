import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Piece, StreamReader } from './stream-reader.js';

const STREAM = [
  ': loading quay/first 43%',
  '',
  'data: {"choices":[{"delta":{"role":"assistant"}}]}',
  '',
  'data: {"choices":[{"delta":{"reasoning_content":"Hm."}}]}',
  '',
  'data: {"choices":[{"delta":{"content":"Grüße "}}]}',
  '',
  'data: {"choices":[{"delta":{"content":"da"}}]}',
  '',
  'data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":7}}',
  '',
  'data: [DONE]',
  '',
  '',
].join('\n');
const PIECES: readonly Piece[] = [
  { kind: 'waiting', text: 'loading quay/first 43%' },
  { kind: 'reasoning', text: 'Hm.' },
  { kind: 'text', text: 'Grüße ' },
  { kind: 'text', text: 'da' },
  { kind: 'usage', promptTokens: 8, outputTokens: 7 },
  { kind: 'done' },
];

describe('the reader of a stream', () => {
  it('gives the same pieces wherever the text is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: STREAM.length }), { maxLength: 12 }), (cuts) => {
        const reader = new StreamReader();
        const at = [0, ...cuts.sort((a, b) => a - b), STREAM.length];
        const pieces = at.slice(1).flatMap((end, n) => reader.take(STREAM.slice(at[n], end)));
        expect(pieces).toEqual(PIECES);
      }),
    );
  });

  it('tells an error that comes after the head', () => {
    const reader = new StreamReader();
    expect(reader.take('data: {"error":{"message":"The engine died."}}\n\n')).toEqual([
      { kind: 'failed', message: 'The engine died.' },
    ]);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkOf, DONE, USAGE_CHUNK } from '../testing/scripted-engine.js';
import { StreamTap } from './stream-tap.js';

/** What comes out when the bytes are cut at these places. */
function through(text: string, cuts: readonly number[], dropUsageChunk: boolean) {
  const bytes = Buffer.from(text);
  const tap = new StreamTap({ dropUsageChunk });
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  const out: Buffer[] = [];
  let from = 0;
  for (const to of [...places, bytes.length]) {
    const given = tap.push(bytes.subarray(from, to));
    if (given) out.push(given);
    from = to;
  }
  const rest = tap.end();
  if (rest) out.push(rest);
  return { text: Buffer.concat(out).toString(), tap };
}

const cuts = fc.array(fc.nat(), { maxLength: 12 });

describe('the tap on a stream', () => {
  it('gives on what came, however the writes were cut', () => {
    const texts = fc.array(fc.string().map(chunkOf), { maxLength: 6 });
    fc.assert(
      fc.property(texts, cuts, (frames, places) => {
        const whole = frames.join('') + DONE;
        const { text, tap } = through(whole, places, true);
        expect(text).toBe(whole);
        expect(tap.done).toBe(true);
      }),
    );
  });

  it('counts and drops the usage chunk, however the writes were cut', () => {
    fc.assert(
      fc.property(cuts, (places) => {
        const { text, tap } = through(chunkOf('日本') + USAGE_CHUNK + DONE, places, true);
        expect(text).toBe(chunkOf('日本') + DONE);
        expect(tap.counted).toEqual({
          tokens: { prompt: 7, cached: 3, output: 2 },
          timings: { promptMs: 8, decodeMs: 20 },
        });
      }),
    );
  });

  it('is not taken in by a text that speaks of [DONE] and usage', () => {
    const frame = chunkOf('data: [DONE] and "usage": {"prompt_tokens": 99}');
    const { text, tap } = through(frame + DONE, [], true);
    expect(text).toBe(frame + DONE);
    expect(tap.counted.tokens).toEqual({});
  });

  it('drops bare colons, and knows carriage returns', () => {
    const { text, tap } = through(':\n\ndata: {"a":1}\r\n\r\n:\n\ndata: [DONE]\r\n\r\n', [3, 9], true);
    expect(text).toBe('data: {"a":1}\r\n\r\ndata: [DONE]\r\n\r\n');
    expect(tap.done).toBe(true);
  });

  it.each([
    ['data: {"error":{"message":"the slot was lost"}}\n\n'],
    ['error: {"message":"the slot was lost"}\n\n'],
  ])('keeps an error of the engine back and knows its words: %s', (frame) => {
    const { text, tap } = through(chunkOf('a') + frame + DONE, [], true);
    expect(text).toBe(chunkOf('a'));
    expect(tap.engineError).toBe('the slot was lost');
    expect(tap.done).toBe(false);
  });

  it('closes a last frame that the engine left open', () => {
    expect(through(`${chunkOf('a')}data: [DONE]`, [], true).text).toBe(chunkOf('a') + DONE);
  });
});

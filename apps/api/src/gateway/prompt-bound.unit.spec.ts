import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foundModel } from '../testing/scripted-agent.js';
import { readCallBody } from './call-body.js';
import { CHAT, EMBEDDINGS } from './engine-routes.js';
import { certainlyTooLong } from './prompt-bound.js';

/** Trained for 8,192 tokens. */
const MODEL = foundModel('m');
const MOST_BYTES = 8192 * 128;

const check = (content: unknown, route = CHAT) => {
  const bytes = Buffer.from(
    JSON.stringify({ model: 'm', messages: [{ role: 'user', content }], input: content }),
  );
  const body = readCallBody(bytes, route);
  if (!body.ok) throw new Error(body.error.message);
  return certainlyTooLong(body.value, route, MODEL);
};

describe('the bound of a prompt by its bytes', () => {
  it('refuses what no vocabulary could bring into the trained context', () => {
    expect(check('x'.repeat(MOST_BYTES * 2))).toMatchObject({
      code: 'context_length_exceeded',
      details: { contextTokens: 8192 },
    });
  });

  it('never refuses a text whose tokens could fit, however its bytes are escaped', () => {
    const unit = fc.constantFrom('x', '\n', '"', '\u0001', '\\', 'é', ' ');
    const property = fc.property(unit, fc.integer({ min: 1, max: MOST_BYTES - 200 }), (text, length) => {
      const count = Math.floor(length / Buffer.byteLength(text));
      return check(text.repeat(count)) === undefined;
    });
    fc.assert(property, { numRuns: 30 });
  });

  it('leaves what is no text to the engine, and inputs that are many prompts', () => {
    const data = 'x'.repeat(MOST_BYTES * 2);
    expect(check([{ type: 'input_audio', input_audio: { data } }])).toBeUndefined();
    expect(
      check([{ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }]),
    ).toBeUndefined();
    expect(check(data, EMBEDDINGS)).toBeUndefined();
  });
});

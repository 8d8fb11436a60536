import { describe, expect, it } from 'vitest';
import { bodyForEngine, readCallBody } from './call-body.js';
import { ENDPOINTS } from './endpoints.js';

const chat = ENDPOINTS.get('/v1/chat/completions')!;
const forEngine = (...args: Parameters<typeof bodyForEngine>): string =>
  Buffer.concat(bodyForEngine(...args)).toString();

const read = (text: string | Buffer) => {
  const body = readCallBody(Buffer.from(text), chat);
  if (!body.ok) throw new Error(body.error.message);
  return body.value;
};
const refusal = (text: string | Buffer) => {
  const body = readCallBody(Buffer.from(text), chat);
  return body.ok ? undefined : body.error;
};

describe('the body of a call', () => {
  it('is given on as the very same bytes when there is nothing to change', () => {
    const body = read('{"model":"a","messages":[]}');
    expect(bodyForEngine(body, 'a')[0]).toBe(body.bytes);
  });

  it('is read, and given on, without the byte order mark that some files begin with', () => {
    const body = read('\ufeff{"model":"a","messages":[]}');
    expect(body.modelName).toBe('a');
    expect(forEngine(body, 'a')).toBe('{"model":"a","messages":[]}');
  });

  it('names the engine’s model, loses our options and asks for the usage of a stream, and keeps all else', () => {
    const text = '{"berth":{"goal":"fast"}, "model":"A@gpu","messages":["{\\"model\\":1}"],"stream":true}';
    expect(forEngine(read(text), 'org/a')).toBe(
      '{"model":"org/a","messages":["{\\"model\\":1}"],"stream":true,"stream_options":{"include_usage":true}}',
    );
  });

  it('adds to the options of a stream, and leaves alone what asks for usage itself', () => {
    const asked = '{"model":"a","stream":true,"stream_options":{"include_usage":true,"x":1}}';
    expect(forEngine(read(asked), 'a')).toBe(asked);
    const other = read('{"model":"a","stream":true,"stream_options":{"include_usage":false,"x":1}}');
    expect(forEngine(other, 'a')).toContain('"stream_options":{"include_usage":true,"x":1}');
    expect(forEngine(read('{"model":"a","stream":true,"stream_options":null}'), 'a')).toContain(
      '"stream_options":{"include_usage":true}',
    );
  });

  it('counts a prompt without its pictures', () => {
    const picture = `data:image/png;base64,${'A'.repeat(50_000)}`;
    const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: picture } }] }];
    const body = read(JSON.stringify({ model: 'a', messages }));
    expect(body.pictures).toBe(1);
    expect(body.promptBytes).toBeLessThan(200);
  });

  it('finds the model behind megabytes without parsing them', () => {
    const body = read(`{"messages":["${'x'.repeat(3_000_000)}"],"max_tokens":9,"model":"a"}`);
    expect([body.modelName, body.maxTokens]).toEqual(['a', 9]);
  });

  it('refuses what two readers could read in two ways', () => {
    expect(refusal('{"model":"a","\\u006dodel":"b"}')).toMatchObject({
      code: 'invalid_request',
      param: 'model',
    });
    expect(refusal(Buffer.from([0x7b, 0xff, 0x7d]))?.message).toContain('UTF-8');
  });

  it('refuses fields that are small by nature and came long or nested without end, without parsing them', () => {
    const deep = '['.repeat(1_000_000) + ']'.repeat(1_000_000);
    for (const name of ['stream', 'stream_options', 'berth', 'max_tokens']) {
      expect([name, refusal(`{"model":"a","${name}":${deep}}`)]).toMatchObject([
        name,
        { code: 'invalid_request', param: name },
      ]);
    }
    expect(refusal(`{"model":${deep}}`)?.param).toBe('model');
    expect(read(`{"model":"a","metadata":${deep},"user":"${'x'.repeat(100_000)}"}`).session).toBeUndefined();
  });

  it('never says back what a caller wrote', () => {
    expect(refusal('{"secret-prompt": oops}')?.message).not.toContain('secret-prompt');
    expect(refusal('"secret-prompt"')?.message).not.toContain('secret-prompt');
    expect(refusal('secret-prompt')?.message).not.toContain('secret-prompt');
  });
});

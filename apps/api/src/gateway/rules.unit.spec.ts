import { describe, expect, it } from 'vitest';
import { berthError, type ErrorCode, ERROR_CODES } from '#domain/errors.js';
import { envelope, retryHeaders } from './answers.js';
import { readCallBody } from './call-body.js';
import { withBodyOptions } from './call-options.js';
import { routeOf } from './endpoints.js';
import { CHAT } from './engine-routes.js';
import { mapEngineError } from './engine-errors.js';
import { downstreamHeaders, upstreamHeaders } from './headers.js';
import { nearest } from './nearest.js';
import { isBackground } from './wanted.js';

const OK_BODY = Buffer.from('{}');

it.each([
  ['/v1/chat/completions/?beta=true', CHAT.path],
  ['//v1//chat/completions', CHAT.path],
  ['http://berth.example:8080/v1/chat/completions', CHAT.path],
  ['HTTP://berth.example', ''],
  ['/v1/models/http://x', '/v1/models/http:/x'],
  ['/', '/'],
])('%s means the route "%s"', (url, route) => {
  expect(routeOf(url)).toBe(route);
});

describe('headers', () => {
  it('lets no hop-by-hop header through in either direction, those named by Connection among them', () => {
    const up = upstreamHeaders(
      { connection: 'close, X-Hop', 'x-hop': '1', te: 'trailers', upgrade: 'h2c', 'x-keep': '1' },
      'key',
      5,
    );
    expect(up).toEqual([
      ...['authorization', 'Bearer key', 'accept-encoding', 'identity', 'content-length', '5', 'x-keep', '1'],
    ]);
    const down = downstreamHeaders({
      connection: 'keep-alive',
      'keep-alive': 'timeout=5',
      'transfer-encoding': 'chunked',
      'access-control-allow-origin': '',
      'content-type': 'application/json',
    });
    expect(down).toEqual([['content-type', 'application/json']]);
  });
});

describe('error answers', () => {
  it('always carry Retry-After with 503, at most 60, and say where retrying cannot help', () => {
    for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
      const headers = Object.fromEntries(retryHeaders(berthError(code, 'x', { retryAfterSeconds: 9999 })));
      const { status, retry } = ERROR_CODES[code];
      expect(headers['retry-after']).toBe(status === 503 ? '60' : undefined);
      if (!retry) expect(headers['x-should-retry']).toBe('false');
      expect(envelope(berthError(code, 'x')).error).toMatchObject({ message: 'x', code, param: null });
    }
  });

  it.each([
    [400, '{"error":{"message":"bad field","param":"top_p"}}', 'invalid_request'],
    [500, '{"error":{"message":"[json.exception.parse_error.101] parse error"}}', 'invalid_request'],
    [501, '{"error":{"message":"This server does not support embeddings"}}', 'invalid_request'],
    [
      500,
      '{"error":{"message":"image input is not supported - hint: you may need to provide the mmproj"}}',
      'invalid_request',
    ],
    [500, '{"error":{"message":"input content cannot be empty"}}', 'invalid_request'],
    [
      500,
      '{"error":{"message":"[json.exception.out_of_range.403] key \'messages\' not found"}}',
      'invalid_request',
    ],
    [429, '{"error":{"message":"too many requests"}}', 'queue_full'],
    [500, '{"error":{"message":"CUDA out of memory"}}', 'engine_failed'],
    [503, '{"error":{"message":"Loading model"}}', 'engine_failed'],
    [401, '{"error":{"message":"Invalid API Key"}}', 'engine_failed'],
    [500, '<html>oops</html>', 'engine_failed'],
  ])('map an engine’s %i %s to %s', (status, answer, code) => {
    expect(mapEngineError(status, Buffer.from(answer), OK_BODY).code).toBe(code);
  });

  it('lay a malformed body at the caller’s door, whatever the engine said', () => {
    expect(mapEngineError(500, Buffer.from('crash'), Buffer.from('{"a":')).code).toBe('invalid_request');
  });
});

describe('a call that nobody waits for', () => {
  it.each([
    ['grading', true],
    ['smoke-test', true],
    ['benchmark', true],
    ['warmup', true],
    ['background', true],
    ['chat', false],
    ['Background', false],
    [undefined, false],
  ])('says so by its intent: %s is background: %s', (intent, background) => {
    const metadata = intent === undefined ? undefined : { intent };
    const body = readCallBody(Buffer.from(JSON.stringify({ model: 'a', metadata })), CHAT);
    expect(body.ok && isBackground(body.value)).toBe(background);
  });
});

describe('options and names', () => {
  const none = { settings: {}, fit: false };

  it('lay the body’s options over the name’s', () => {
    const laid = withBodyOptions(
      { settings: { context: 4096, kvType: 'q8_0' }, fit: false },
      { context: 8192, quant: 'F16' },
      'use',
    );
    expect(laid).toEqual({
      ok: true,
      value: { settings: { context: 8192, kvType: 'q8_0' }, fit: false, artifact: 'F16' },
    });
  });

  it.each([
    [{ context: 0 }],
    [{ context: { min: 9, max: 3 } }],
    [{ kvType: 'f32' }],
    [{ pinned: true }],
    [{ constructor: 1 }],
    [{ fit: 'yes' }],
  ])('refuse %j', (given) => {
    const laid = withBodyOptions(none, given, 'admin');
    expect(laid.ok ? undefined : laid.error.code).toBe('invalid_request');
  });

  it('ask for an admin’s rights where an option is an admin’s', () => {
    const laid = (rights: 'use' | 'admin') => withBodyOptions(none, { priority: 5 }, rights);
    expect(laid('admin').ok).toBe(true);
    const refused = laid('use');
    expect(refused.ok ? undefined : refused.error).toMatchObject({
      code: 'forbidden',
      param: 'berth.priority',
    });
  });

  it('names what is near a wrong name, and nothing that is not', () => {
    const names = ['qwen/qwen3-8b', 'llama-3-8b', 'berth/smoke'];
    expect(nearest('qwen3-8', names)[0]).toBe('qwen/qwen3-8b');
    expect(nearest('SMOKE', names)).toEqual(['berth/smoke']);
    expect(nearest('zzzzzzzzzzz', names)).toEqual([]);
  });
});

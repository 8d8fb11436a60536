import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import OpenAI, { toFile } from 'openai';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  chunkOf,
  DONE,
  sayHello,
  ScriptedEngine,
  startStream,
  USAGE_CHUNK,
} from '../testing/scripted-engine.js';
import { eventually, post, RawSocket, type Stand, startStand } from '../testing/stand.js';

const CHAT = '/v1/chat/completions';

describe('the front door over the wire', () => {
  let engine: ScriptedEngine;
  let stand: Stand;
  const sockets: RawSocket[] = [];

  beforeAll(async () => {
    engine = await new ScriptedEngine().start();
    stand = await startStand({ models: ['chat-a', 'org/chat-b', 'embed'], portOf: () => engine.port });
  });
  afterEach(() => {
    engine.script = sayHello;
    engine.requests.length = 0;
    for (const socket of sockets.splice(0)) socket.socket.destroy();
  });
  afterAll(async () => {
    await stand.stop();
    engine.die();
  });

  const chat = (body: object, headers: Record<string, string> = {}) =>
    fetch(`${stand.url}${CHAT}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model: 'chat-a', messages: [{ role: 'user', content: 'hi' }], ...body }),
    });
  const raw = () => {
    const socket = new RawSocket(stand.port);
    sockets.push(socket);
    return socket;
  };
  const errorOf = async (response: Response) =>
    ((await response.json()) as { error: { message: string; code: string; param: string | null } }).error;
  const callOf = (response: Response) => response.headers.get('x-berth-call') ?? '';
  const body = (more: object = {}) => JSON.stringify({ model: 'chat-a', messages: [], ...more });

  it('answers a call and records it with its resident, its decision and its counts', async () => {
    const response = await chat({});
    expect(response.status).toBe(200);
    expect(response.headers.get('x-berth-model')).toBe('chat-a:F16');
    expect(response.headers.get('x-berth-worker')).toBe(stand.agent.id);
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'hello' } }] });
    const end = await stand.finished('chat-a', callOf(response));
    expect(end).toMatchObject({
      outcome: 'completed',
      status: 200,
      artifact: 'F16',
      attempts: 1,
      tokens: { prompt: 7, output: 2 },
    });
    expect(end.residentId).toBeDefined();
    expect(end.decisionId).toBeDefined();
    expect(end.stamps.firstByteAt).toBeDefined();
  });

  it('never forwards the key of a caller, and shows the engine its own', async () => {
    await chat({}, { authorization: 'Bearer sk-mine', cookie: 'a=b', 'x-api-key': 'mine', 'x-keep': 'yes' });
    const { headers } = engine.requests[0]!;
    expect(headers.authorization).toMatch(/^Bearer [0-9a-f]{64}$/);
    expect(headers.cookie).toBeUndefined();
    expect(headers['x-api-key']).toBeUndefined();
    expect(headers['accept-encoding']).toBe('identity');
    expect(headers['x-keep']).toBe('yes');
  });

  it('gives a body on as it came', async () => {
    const text = '{ "model" : "chat-a",  "messages":[ {"role":"user","content":"h\\u00e9"} ],"x":1e2}';
    await fetch(`${stand.url}${CHAT}`, { method: 'POST', body: text });
    expect(engine.requests[0]!.body.toString()).toBe(text);
  });

  it('takes its own options off a body and a name before the engine sees them', async () => {
    const response = await chat({ model: 'chat-a@ctx=4096', berth: { goal: 'fast' } });
    expect(response.status).toBe(200);
    const seen = JSON.parse(engine.requests[0]!.body.toString()) as Record<string, unknown>;
    expect(seen['model']).toBe('chat-a');
    expect(seen).not.toHaveProperty('berth');
  });

  it('streams with exactly one [DONE], and leaves out a usage chunk that nobody asked for', async () => {
    const response = await chat({ stream: true });
    const text = await response.text();
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(text).toBe(chunkOf('hel') + chunkOf('lo') + DONE);
    const end = await stand.finished('chat-a', callOf(response));
    expect(end.tokens).toEqual({ prompt: 7, cached: 3, output: 2 });
    expect(end.timings).toEqual({ promptMs: 8, decodeMs: 20 });
  });

  it('gives the usage chunk to a caller that asked for it', async () => {
    const response = await chat({ stream: true, stream_options: { include_usage: true } });
    expect(await response.text()).toContain(USAGE_CHUNK);
  });

  it('keeps every byte of a character that is split over two chunks', async () => {
    const bytes = Buffer.from(chunkOf('日本語') + DONE);
    const cut = bytes.indexOf(Buffer.from('本')) + 1;
    engine.script = async ({ res }) => {
      startStream(res);
      res.write(bytes.subarray(0, cut));
      await new Promise((resolve) => setImmediate(resolve));
      res.end(bytes.subarray(cut));
    };
    const text = await (await chat({ stream: true })).text();
    expect(text).toBe(bytes.toString());
  });

  it('ends a stream whose engine dies with an error frame and a broken connection, and no [DONE]', async () => {
    engine.script = ({ res }) => {
      startStream(res);
      res.write(`${chunkOf('hel')}data: {"half`);
      setImmediate(() => res.socket?.resetAndDestroy());
    };
    const socket = raw();
    socket.send(post(CHAT, body({ stream: true })));
    const heard = await socket.ends();
    expect(heard).toContain('"code":"engine_failed"');
    expect(heard).not.toContain('[DONE]');
    expect(heard).not.toContain('half');
    expect(heard.endsWith('0\r\n\r\n')).toBe(false);
    const id = /x-berth-call: (\S+)/.exec(heard)![1]!;
    expect(await stand.finished('chat-a', id)).toMatchObject({ outcome: 'failed', code: 'engine_failed' });
  });

  it('takes a stream that ends without [DONE] for a failure', async () => {
    engine.script = ({ res }) => {
      startStream(res);
      res.end(chunkOf('hel'));
    };
    const socket = raw();
    socket.send(post(CHAT, body({ stream: true })));
    expect(await socket.ends()).toContain('"code":"engine_failed"');
  });

  it('drops what an engine says after [DONE]', async () => {
    engine.script = ({ res }) => {
      startStream(res);
      res.end(chunkOf('a') + DONE + DONE + chunkOf('b'));
    };
    expect(await (await chat({ stream: true })).text()).toBe(chunkOf('a') + DONE);
  });

  it('tries a dead connection once more, before any byte', async () => {
    let first = true;
    engine.script = (request) => {
      if (first) {
        first = false;
        request.res.socket?.resetAndDestroy();
        return;
      }
      return sayHello(request);
    };
    const response = await chat({});
    expect(response.status).toBe(200);
    expect(engine.requests).toHaveLength(2);
    expect((await stand.finished('chat-a', callOf(response))).attempts).toBe(2);
  });

  it('frees the engine at once when a caller of a stream leaves', async () => {
    engine.script = ({ res }) => {
      startStream(res);
      res.write(chunkOf('hel'));
    };
    const socket = raw();
    socket.send(post(CHAT, body({ stream: true })));
    const heard = await socket.hears('hel');
    socket.socket.destroy();
    await engine.requests[0]!.closed;
    const id = /x-berth-call: (\S+)/.exec(heard)![1]!;
    expect(await stand.finished('chat-a', id)).toMatchObject({ outcome: 'abandoned', status: 200 });
  });

  it('frees the engine at once when a caller leaves before any answer', async () => {
    engine.script = () => undefined;
    const socket = raw();
    socket.send(post(CHAT, body()));
    await eventually('the request at the engine', () => engine.requests[0]);
    socket.socket.destroy();
    await engine.requests[0]!.closed;
    const end = await eventually('its end', async () => {
      for (const event of await stand.callEvents('chat-a')) {
        if (event.type !== 'CallFinished' || event.data.outcome !== 'abandoned') continue;
        if (event.data.stamps.firstByteAt === undefined) return event.data;
      }
      return undefined;
    });
    expect(end.status).toBe(499);
  });

  it('gives on two megabytes whole', async () => {
    const content = `data:image/png;base64,${'x'.repeat(2_000_000)}`;
    const picture = [{ type: 'image_url', image_url: { url: content } }];
    const response = await chat({ messages: [{ role: 'user', content: picture }] });
    expect(response.status).toBe(200);
    expect(engine.requests[0]!.body.includes(content)).toBe(true);
  });

  it('refuses a body above its limit with 413', async () => {
    const socket = raw();
    socket.send(`POST ${CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n{`);
    expect(await socket.hears('body_too_large')).toContain('HTTP/1.1 413');
  });

  it('lets fetch see the 413 of a body of 65 MB, which it is still sending', async () => {
    const response = await fetch(`${stand.url}${CHAT}`, { method: 'POST', body: Buffer.alloc(68_000_000) });
    expect(response.status).toBe(413);
    expect(await errorOf(response)).toMatchObject({ code: 'body_too_large' });
    const chunked = new ReadableStream({
      start(controller) {
        for (let n = 0; n < 66; n += 1) controller.enqueue(Buffer.alloc(1_048_576, 0x20));
        controller.close();
      },
    });
    const init = { method: 'POST', body: chunked, duplex: 'half' as const };
    expect((await fetch(`${stand.url}${CHAT}`, init)).status).toBe(413);
    expect(engine.requests).toEqual([]);
  });

  it('refuses a prompt that cannot fit by its bytes alone, before any engine reads it', async () => {
    const response = await chat({ messages: [{ role: 'user', content: 'word '.repeat(400_000) }] });
    expect(response.status).toBe(400);
    const error = await errorOf(response);
    expect(error).toMatchObject({ code: 'context_length_exceeded' });
    expect(JSON.stringify(error)).toContain("This model's maximum context length is 8192 tokens");
    expect(engine.requests).toEqual([]);
  });

  it('says that a compressed body is not read, instead of calling it malformed', async () => {
    const response = await chat({}, { 'content-encoding': 'gzip' });
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ param: 'content-encoding' });
  });

  it('answers pipelined requests in their order', async () => {
    const socket = raw();
    socket.send(`${post(CHAT, body())}GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    const heard = await socket.hears('"object":"list"');
    expect(heard.indexOf('chat.completion')).toBeLessThan(heard.indexOf('"object":"list"'));
  });

  it('answers 100-continue and a chunked upload', async () => {
    const socket = raw();
    socket.send(
      `POST ${CHAT} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    await socket.hears('100 Continue');
    const text = body();
    socket.send(`${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`);
    expect(await socket.hears('chat.completion')).toContain('HTTP/1.1 200');
    expect(engine.requests[0]!.headers.expect).toBeUndefined();
  });

  it.each([
    ['malformed JSON', '{"model":"chat-a",', 'not valid JSON', null],
    ['no object', '[]', 'not a JSON object', null],
    ['an empty body', '', 'not valid JSON', null],
    ['no model', '{"messages":[]}', 'names no "model"', 'model'],
    ['a model that is no string', '{"model":7}', '"model" must be a string', 'model'],
    ['two models', '{"model":"chat-a","model":"chat-a"}', 'more than once', 'model'],
    ['an unknown option', '{"model":"chat-a@nope"}', 'Known: @gpu', 'model'],
    [
      'a wrong option in the body',
      '{"model":"chat-a","berth":{"goal":"best"}}',
      'must be one of',
      'berth.goal',
    ],
    ['a stream that is no flag', '{"model":"chat-a","stream":"yes"}', 'true or false', 'stream'],
  ])('refuses %s with 400 and says what is wrong', async (_, text, words, param) => {
    const response = await fetch(`${stand.url}${CHAT}`, { method: 'POST', body: text });
    expect(response.status).toBe(400);
    expect(response.headers.get('x-should-retry')).toBe('false');
    expect(response.headers.get('x-berth-call')).toBeTruthy();
    const error = await errorOf(response);
    expect(error.message).toContain(words);
    expect(error.code).toBe('invalid_request');
    expect(error.param).toBe(param);
    expect(engine.requests).toHaveLength(0);
  });

  it('answers an unknown model with 404 and the nearest names, and records it as unresolved', async () => {
    const response = await chat({ model: 'chat-x' });
    expect(response.status).toBe(404);
    const error = await errorOf(response);
    expect(error.code).toBe('model_not_found');
    expect(error.message).toContain('"chat-a"');
    expect(await stand.finished('~unresolved', callOf(response))).toMatchObject({
      outcome: 'refused',
      status: 404,
    });
  });

  it('refuses to chat with an embedding model, and says what it is for', async () => {
    const response = await chat({ model: 'embed' });
    expect(response.status).toBe(400);
    expect((await errorOf(response)).message).toContain('/v1/embeddings');
  });

  it("repairs an engine's statuses: what is the caller's fault is 400", async () => {
    engine.script = ({ res }) => {
      res.writeHead(500, { 'content-type': 'application/json' });
      res.end('{"error":{"code":500,"message":"image input is not supported","type":"server_error"}}');
    };
    const response = await chat({});
    expect(response.status).toBe(400);
    expect((await errorOf(response)).message).toBe('image input is not supported');
  });

  it('says that a prompt is too long in the words that agents know', async () => {
    engine.script = ({ res }) => {
      res.writeHead(400, { 'content-type': 'application/json' });
      res.end(
        JSON.stringify({
          error: {
            code: 400,
            message: 'x',
            type: 'exceed_context_size_error',
            n_prompt_tokens: 9000,
            n_ctx: 8192,
          },
        }),
      );
    };
    const response = await chat({});
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({
      code: 'context_length_exceeded',
      message:
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    });
  });

  it('lists models without loading any, and finds one with a slash, raw and encoded', async () => {
    const list = (await (await fetch(`${stand.url}/v1/models/`)).json()) as { data: { id: string }[] };
    expect(list.data.map((model) => model.id)).toEqual(['chat-a', 'embed', 'org/chat-b']);
    for (const name of ['org/chat-b', 'org%2Fchat-b', 'org/chat-b/?x=1']) {
      const response = await fetch(`${stand.url}/v1/models/${name}`);
      expect(await response.json()).toMatchObject({
        id: 'org/chat-b',
        berth: {
          loaded: false,
          kind: 'chat',
          context: { trained: 8192 },
          artifacts: [{ label: 'F16', complete: true }],
          verdict: { fits: 'now', artifact: 'F16', rung: 'ram-only', reason: expect.any(String) as string },
        },
      });
    }
    expect((await fetch(`${stand.url}/v1/models/none`)).status).toBe(404);
    expect(engine.requests).toHaveLength(0);
  });

  it('takes the usual mistakes in a base URL, and the other names of a route, for what they mean', async () => {
    const answers = [
      ...['/chat/completions', '/v1/v1/chat/completions/?x=1', '//v1//chat/completions'].map((path) =>
        fetch(`${stand.url}${path}`, { method: 'POST', body: body() }),
      ),
      ...['/models', '/v1/v1/models/org/chat-b', '/v1/health'].map((path) => fetch(`${stand.url}${path}`)),
    ];
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(6).fill(200));
    const ranked = await fetch(`${stand.url}/rerank`, { method: 'POST', body: '{"model":"chat-a"}' });
    expect((await errorOf(ranked)).message).toContain('which /v1/rerank is not');
    const told = await fetch(`${stand.url}/messages`, { method: 'POST', body: '{"model":"none"}' });
    expect(await told.json()).toMatchObject({ type: 'error' });
  });

  it('answers HEAD without a body, other methods with 405 and other paths with 404', async () => {
    const head = await fetch(`${stand.url}/v1/models`, { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe('');
    const get = await fetch(`${stand.url}${CHAT}`);
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST']);
    const other = await fetch(`${stand.url}/v1/audio/speech`, { method: 'POST', body: '{}' });
    expect(other.status).toBe(404);
    expect((await errorOf(other)).code).toBe('not_found');
    expect((await fetch(`${stand.url}${CHAT}/`, { method: 'POST', body: body() })).status).toBe(200);
  });

  it('takes no call with a foreign Host, a foreign Origin or a forwarding header', async () => {
    for (const header of [
      'host: evil.example',
      'origin: https://evil.example',
      'x-forwarded-for: 10.0.0.1',
    ]) {
      const socket = raw();
      const host = header.startsWith('host') ? '' : 'host: localhost\r\n';
      socket.send(`GET /v1/models HTTP/1.1\r\n${host}${header}\r\n\r\n`);
      expect(await socket.hears('invalid_api_key')).toContain('HTTP/1.1 401');
    }
  });

  it('guards management the same way, and shows the queue', async () => {
    expect(await (await fetch(`${stand.url}/admin/queue`)).json()).toEqual({ items: [] });
    const socket = raw();
    socket.send('GET /admin/queue HTTP/1.1\r\nhost: evil.example\r\n\r\n');
    expect(await socket.hears('\r\n\r\n')).toContain('HTTP/1.1 401');
  });

  it('gives every answer an id by which it can be spoken of, errors among them', async () => {
    const asked = [
      chat({}),
      chat({ model: 'nobody' }),
      fetch(`${stand.url}${CHAT}`, { method: 'POST', body: '{' }),
      fetch(`${stand.url}${CHAT}`),
      fetch(`${stand.url}${CHAT}`, { method: 'OPTIONS' }),
      ...['/v1/models', '/v1/nothing', '/api/tags', '/health', '/metrics'].map((path) =>
        fetch(`${stand.url}${path}`),
      ),
    ];
    const ids = [];
    for (const answer of await Promise.all(asked)) {
      const id = answer.headers.get('x-request-id');
      expect(id).toMatch(/^[0-9a-f-]{36}$/);
      expect(answer.headers.get('x-berth-call')).toBe(id);
      ids.push(id);
    }
    expect(new Set(ids).size).toBe(ids.length);
    for (const path of ['/admin/queue', '/admin/nothing'])
      expect((await fetch(`${stand.url}${path}`)).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('passes the trace context of a caller on to the engine', async () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    expect((await chat({}, { traceparent, tracestate: 'vendor=1' })).status).toBe(200);
    expect(engine.requests[0]!.headers).toMatchObject({ traceparent, tracestate: 'vendor=1' });
  });

  it('spools a form with a file, its model behind the file, gives it on whole, and leaves nothing of it', async () => {
    const uploads = join(stand.home, 'uploads');
    const sound = Buffer.alloc(3_000_000, 'wav\r\n--');
    const kept: unknown[] = [];
    engine.script = async ({ res }) => {
      kept.push(await readdir(uploads));
      res.setHeader('content-type', 'application/json');
      res.end('{"text":"aye"}');
    };
    const openai = new OpenAI({ baseURL: `${stand.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const file = await toFile(sound, 'sound.wav');
    const said = await openai.audio.transcriptions.create({ file, model: 'chat-b', language: 'en' });
    expect(said.text).toBe('aye');
    const { url, body: got, headers } = engine.requests[0]!;
    expect(url).toBe('/v1/audio/transcriptions');
    expect(headers['content-type']).toMatch(/^multipart\/form-data; boundary=/);
    expect(got.includes(sound)).toBe(true);
    expect(got.toString('latin1')).toMatch(/name="model"\r\n\r\norg\/chat-b\r\n/);
    expect(got.toString('latin1')).toContain('name="language"\r\n\r\nen\r\n');
    expect([...kept, await readdir(uploads)]).toEqual([[], []]);
    // Whoever leaves in the middle, is refused or fails leaves no more behind.
    const half = raw();
    half.send(
      `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=b\r\n` +
        'content-length: 1000\r\n\r\n--b\r\n',
    );
    half.socket.end();
    await half.ends();
    const none = openai.audio.transcriptions.create({ file, model: 'none' });
    await expect(none).rejects.toMatchObject({ status: 404, code: 'model_not_found' });
    engine.script = ({ res }) => void res.writeHead(500).end('{"error":{"message":"crash"}}');
    const failed = openai.audio.transcriptions.create({ file, model: 'chat-b' });
    await expect(failed).rejects.toMatchObject({ status: 502, code: 'engine_failed' });
    const plain = await fetch(`${stand.url}/audio/transcriptions`, { method: 'POST', body: '{}' });
    expect([plain.status, (await errorOf(plain)).param]).toEqual([400, 'content-type']);
    const form = new FormData();
    form.set('file', new Blob([sound]));
    const unnamed = await fetch(`${stand.url}/v1/audio/transcriptions`, { method: 'POST', body: form });
    expect([unnamed.status, (await errorOf(unnamed)).param]).toEqual([400, 'model']);
    expect(await readdir(uploads)).toEqual([]);
    if (process.platform === 'linux')
      await eventually('the files are closed', async () => {
        const open = await Promise.all(
          (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
        );
        return open.some((path) => path.startsWith(uploads)) ? undefined : true;
      });
  });

  it('counts calls for Prometheus, under few labels', async () => {
    expect((await chat({})).status).toBe(200);
    const counted = /berth_calls_total\{endpoint="\/v1\/chat\/completions",outcome="completed"\} [1-9]/;
    const text = await eventually('the count of a call', async () => {
      const said = await (await fetch(`${stand.url}/metrics`)).text();
      return counted.test(said) ? said : undefined;
    });
    expect(text).toContain('berth_first_byte_seconds_bucket');
    expect(text.split('\n').length).toBeLessThan(150);
    expect(text).not.toContain('chat-a');
    expect((await fetch(`${stand.url}/metrics`, { method: 'POST' })).status).toBe(405);
  });

  it('says in /health that all is well', async () => {
    const health = await (await fetch(`${stand.url}/health`)).json();
    expect(health).toMatchObject({ status: 'ok', service: 'berth', worker: 'scripted', degraded: [] });
  });
});

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

const turn = { role: 'user', content: 'hi' };
const ASKED = {
  '/v1/chat/completions': { messages: [turn] },
  '/v1/responses': { input: 'hi' },
  '/v1/messages': { max_tokens: 9, messages: [turn] },
  '/api/chat': { messages: [turn] },
} as const;
type Route = keyof typeof ASKED;
const ROUTES = Object.keys(ASKED) as Route[];

describe('every protocol over the wire', () => {
  let engine: ScriptedEngine;
  let stand: Stand;
  const sockets: RawSocket[] = [];

  beforeAll(async () => {
    engine = await new ScriptedEngine().start();
    stand = await startStand({ models: ['chat-a', 'embed'], portOf: () => engine.port });
    await (await ask('/v1/chat/completions', bodyOf('/v1/chat/completions', { stream: false }))).text();
    engine.requests.length = 0;
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

  const bodyOf = (route: Route, more: object = {}) =>
    JSON.stringify({ model: 'chat-a', stream: true, ...ASKED[route], ...more });
  const ask = (route: string, body: string, init: RequestInit = {}) =>
    fetch(`${stand.url}${route}`, { method: 'POST', body, ...init });
  const raw = () => {
    const socket = new RawSocket(stand.port);
    sockets.push(socket);
    return socket;
  };
  /** The text of an answer, out of whatever lines its protocol has. */
  const wordsOf = (route: Route, text: string): string =>
    text
      .split('\n')
      .map((line) => line.replace(/^data: /, ''))
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, never>)
      .map((event: Record<string, unknown>) => {
        const of = (value: unknown, ...path: string[]) =>
          path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], value);
        if (route === '/v1/chat/completions') return of(event, 'choices', '0', 'delta', 'content');
        if (route === '/v1/responses')
          return event['type'] === 'response.output_text.delta' ? event['delta'] : '';
        if (route === '/v1/messages') return of(event, 'delta', 'text');
        return of(event, 'message', 'content');
      })
      .join('');

  it.each(ROUTES)(
    '%s: keeps characters, tags and frames whole, wherever the engine cuts its bytes',
    async (route) => {
      const bytes = Buffer.from(
        chunkOf('<thi') +
          chunkOf('nk>潮</thi') +
          chunkOf('nk>\n日本') +
          chunkOf('語 🚢') +
          USAGE_CHUNK +
          DONE,
      );
      engine.script = async ({ res }) => {
        startStream(res);
        for (let at = 0; at < bytes.length; at += 7) {
          res.write(bytes.subarray(at, at + 7));
          await new Promise((resolve) => setImmediate(resolve));
        }
        res.end();
      };
      const text = await (await ask(route, bodyOf(route))).text();
      expect(wordsOf(route, text)).toBe('日本語 🚢');
      expect(text).toContain('潮');
      expect(text).not.toMatch(/think>|\ufffd/);
      expect(text.match(/\[DONE\]/g)?.length ?? 0).toBe(route === '/v1/chat/completions' ? 1 : 0);
    },
  );

  it.each([
    ['/v1/chat/completions', 'data: {"error":{', undefined],
    ['/v1/responses', 'event: response.failed', '"sequence_number":'],
    ['/v1/messages', 'event: error', '"api_error"'],
    ['/api/chat', '{"error":"', undefined],
  ] as const)(
    '%s: ends a stream whose engine dies with its own error and a broken connection',
    async (route, words, more) => {
      engine.script = ({ res }) => {
        startStream(res);
        res.write(chunkOf('hel'));
        setImmediate(() => res.socket?.resetAndDestroy());
      };
      const socket = raw();
      socket.send(post(route, bodyOf(route)));
      const heard = await socket.ends();
      expect(heard).toContain(words);
      if (more !== undefined) expect(heard).toContain(more);
      expect(heard).not.toMatch(/\[DONE\]|message_stop|response\.completed|"done":true/);
      expect(heard.endsWith('0\r\n\r\n')).toBe(false);
    },
  );

  it.each([
    ['/v1/responses', (body: Record<string, unknown>) => (body['error'] as { code: string }).code],
    ['/v1/messages', (body: Record<string, unknown>) => (body['error'] as { type: string }).type],
    ['/api/chat', (body: Record<string, unknown>) => body['error']],
  ] as const)('%s: says what is wrong in its own shape', async (route, said) => {
    const response = await ask(route, bodyOf(route, { model: 'chat-x' }));
    expect(response.status).toBe(404);
    expect(response.headers.get('x-should-retry')).toBe('false');
    const words = said((await response.json()) as Record<string, unknown>);
    expect(words).toMatch(/model_not_found|not_found_error|There is no model/);
    expect((await ask(route, '{')).status).toBe(400);
    expect((await ask(route, bodyOf(route, { messages: 7, input: 7 }))).status).toBe(400);
    expect((await fetch(`${stand.url}${route}`)).status).toBe(405);
    expect(engine.requests).toHaveLength(0);
  });

  it.each(ROUTES)('%s: frees the engine when its caller leaves', async (route) => {
    engine.script = ({ res }) => {
      startStream(res);
      res.write(chunkOf('hel'));
    };
    const socket = raw();
    socket.send(post(route, bodyOf(route)));
    await socket.hears('hel');
    socket.socket.destroy();
    await engine.requests[0]!.closed;
  });

  // A close of the sending half is all that is seen of most callers that leave; both free the engine at once.
  it.each(ROUTES)(
    '%s: takes a caller that closes its half of the connection for one that left',
    async (route) => {
      engine.script = () => undefined;
      const socket = raw();
      socket.send(post(route, bodyOf(route)));
      const asked = await eventually('the request at the engine', () => engine.requests[0]);
      socket.socket.end();
      await asked.closed;
      expect(await socket.ends()).not.toContain('hello');
    },
  );

  it.each(ROUTES)(
    '%s: takes a chunked upload after 100-continue, and two requests at once',
    async (route) => {
      const socket = raw();
      socket.send(
        `POST ${route}/?beta=true HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n`,
      );
      await socket.hears('100 Continue');
      const text = bodyOf(route, { stream: false, metadata: { session: '日本' } });
      const bytes = Buffer.from(text);
      // In the middle of a character.
      const cut = bytes.indexOf('本') + 1;
      for (const part of [bytes.subarray(0, 9), bytes.subarray(9, cut), bytes.subarray(cut)]) {
        socket.send(
          Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]),
        );
      }
      socket.send(`0\r\n\r\n${post(route, text)}GET /api/version HTTP/1.1\r\nhost: localhost\r\n\r\n`);
      const heard = await socket.hears(/"version":/);
      expect(heard.match(/HTTP\/1\.1 200/g)).toHaveLength(3);
      expect(heard.match(/hello/g)).toHaveLength(2);
    },
  );

  it.each(ROUTES)('%s: answers HEAD, OPTIONS and a slash at the end', async (route) => {
    const socket = raw();
    const bare = (method: string, path: string) => `${method} ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
    const asked = post(`${route}//?x=1`, bodyOf(route, { stream: false }));
    socket.send(bare('HEAD', route) + bare('OPTIONS', `${route}/`) + asked);
    const heard = await socket.hears('hello');
    expect([...heard.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
      '405',
      '204',
      '200',
    ]);
    // Nothing follows the head of the first: a body would be read as the next answer.
    const [head = '', options = ''] = heard.split('\r\n\r\n');
    expect(head).toMatch(/^allow: POST$/im);
    expect(options).toMatch(/^HTTP\/1\.1 204[^]*^allow: POST, OPTIONS$/im);
  });

  it('gives on 64 MB whole, and refuses what is larger', async () => {
    const limit = 64 * 1024 * 1024;
    const body = Buffer.alloc(limit, 'y');
    const json = bodyOf('/v1/chat/completions', { stream: false, x: '' });
    body.write(json.slice(0, -2), 0);
    body.write('"}', limit - 2);
    // One buffer for the whole way: what is tested is the door, not the copies of a test. The engine reads none of it either.
    engine.script = ({ res }) => sayHello({ body: Buffer.from('{}'), res });
    const socket = raw();
    const head = (length: number) =>
      `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n\r\n`;
    socket.send(head(limit));
    socket.send(body);
    expect(await socket.hears(/^HTTP/, 50_000)).toMatch(/^HTTP\/1\.1 200/);
    expect(engine.requests[0]!.body.equals(body)).toBe(true);
    // Nothing of the body has to be there for its refusal.
    const over = raw();
    over.send(head(limit + 1));
    expect(await over.hears(/^HTTP/)).toMatch(/^HTTP\/1\.1 413/);
    expect(engine.requests).toHaveLength(1);
  });

  it('sends the one tool that is named alone, and required', async () => {
    const tool = (name: string) => ({ type: 'function', function: { name, parameters: {} } });
    const choice = { type: 'function', function: { name: 'b' } };
    await ask(
      '/v1/chat/completions',
      bodyOf('/v1/chat/completions', { tools: [tool('a'), tool('b')], tool_choice: choice }),
    );
    const chat = JSON.parse(engine.requests[0]!.body.toString()) as Record<string, unknown>;
    expect(chat).toMatchObject({ tools: [tool('b')], tool_choice: 'required' });
    const input_schema = { type: 'object' };
    await ask(
      '/v1/messages',
      bodyOf('/v1/messages', {
        tools: [
          { name: 'a', input_schema },
          { name: 'b', input_schema },
        ],
        tool_choice: { type: 'tool', name: 'b' },
      }),
    );
    const message = JSON.parse(engine.requests[1]!.body.toString()) as {
      tools: unknown[];
      tool_choice: unknown;
    };
    expect(message.tool_choice).toBe('required');
    expect(message.tools).toHaveLength(1);
  });

  it.each([
    ['/v1/messages', 'stop', '"stop_sequences" must be texts.', undefined],
    ['/v1/responses', 'max_tokens', '"max_output_tokens" must be texts.', 'max_output_tokens'],
    ['/v1/responses', 'messages[1].content', '"input" must be texts.', 'input'],
    [
      '/v1/responses',
      'response_format.json_schema',
      '"text.format.json_schema" must be texts.',
      'text.format.json_schema',
    ],
    ['/api/chat', 'max_tokens', '"options.num_predict" must be texts.', undefined],
    ['/api/generate', 'messages[0]', '"prompt" must be texts.', undefined],
    ['/v1/chat/completions', 'max_tokens', '"max_tokens" must be texts.', 'max_tokens'],
  ])(
    '%s: says of the field that the caller wrote what the engine says of "%s"',
    async (route, param, words, own) => {
      engine.script = ({ res }) => {
        const error = { message: `"${param}" must be texts.`, type: 'invalid_request_error', param };
        res.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
      };
      const messages = [{ role: 'user', content: 'hi' }];
      const asked = route === '/v1/responses' ? { input: 'hi' } : { messages, prompt: 'hi', max_tokens: 9 };
      const answer = await ask(route, JSON.stringify({ model: 'chat-a', ...asked, stream: false }));
      expect(answer.status).toBe(400);
      const text = await answer.text();
      const { error } = JSON.parse(text) as { error: string | { message: string; param?: string } };
      expect(typeof error === 'string' ? { message: error } : error).toMatchObject(
        own === undefined ? { message: words } : { message: words, param: own },
      );
    },
  );

  it('names the field that was too long', async () => {
    engine.script = ({ res }) => {
      res.writeHead(400, { 'content-type': 'application/json' });
      res.end(
        '{"error":{"type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192,"message":"x"}}',
      );
    };
    const embedded = await ask('/v1/embeddings', JSON.stringify({ model: 'embed', input: 'long' }));
    const { error } = (await embedded.json()) as { error: { message: string; param: string } };
    expect(error.param).toBe('input');
    expect(error.message).not.toContain('messages');
    const message = await ask('/v1/messages', bodyOf('/v1/messages'));
    expect(await message.json()).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 9000 tokens > 8192 maximum' },
    });
  });

  it("says what it does not do with Ollama's files, and loads without an answer", async () => {
    const pull = await ask('/api/pull', '{"model":"x"}');
    expect(pull.status).toBe(501);
    expect(await pull.json()).toHaveProperty('error', expect.stringContaining('pull'));
    const loaded = await ask('/api/generate', '{"model":"chat-a"}');
    expect(await loaded.text()).toMatch(/"done":true,"done_reason":"load"/);
    expect(engine.requests).toHaveLength(0);
    const id = loaded.headers.get('x-berth-call') ?? '';
    expect(await stand.finished('chat-a', id)).toMatchObject({ outcome: 'completed', status: 200 });
    await eventually('the model is listed as loaded', async () => {
      const { models } = (await (await fetch(`${stand.url}/api/ps`)).json()) as {
        models: { name: string }[];
      };
      return models.find(({ name }) => name === 'chat-a');
    });
  });

  describe('with an engine that has routes of its own for Responses and Messages', () => {
    beforeAll(() => stand.agent.register('messages', 'responses'));
    afterAll(() => stand.agent.register());
    afterEach(() => void (has = true));
    let has = true;

    const frames = (...events: Record<string, unknown>[]) =>
      events.map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`).join('');
    /** As llama-server tells them: without numbers, indices and ends of arguments; with `end_turn` behind a stop string. */
    const STREAMS: Readonly<Record<string, string>> = {
      '/v1/messages':
        frames(
          {
            type: 'message_start',
            message: { id: 'chatcmpl-1', usage: { input_tokens: 4, cache_read_input_tokens: 3 } },
          },
          { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
          { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm' } },
          { type: 'content_block_stop', index: 0 },
          { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
          { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'hello' } },
          { type: 'content_block_stop', index: 1 },
          { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 't', name: 'f' } },
          {
            type: 'content_block_delta',
            index: 2,
            delta: { type: 'input_json_delta', partial_json: '{"a":1}' },
          },
          { type: 'content_block_stop', index: 2 },
          {
            type: 'message_delta',
            delta: { stop_reason: 'end_turn', stop_sequence: 'END' },
            usage: { output_tokens: 5 },
          },
          { type: 'message_stop' },
        ) + DONE,
      '/v1/responses':
        frames(
          { type: 'response.created', response: { id: 'r', status: 'in_progress' } },
          { type: 'response.reasoning_text.delta', delta: 'hm' },
          { type: 'response.output_text.delta', delta: 'hello' },
          {
            type: 'response.output_item.added',
            item: { type: 'function_call', id: 'i', call_id: 't', name: 'f' },
          },
          { type: 'response.function_call_arguments.delta', item_id: 'i', delta: '{"a":1}' },
          {
            type: 'response.output_item.done',
            item: { type: 'function_call', id: 'i', arguments: '{"a":1}' },
          },
          {
            type: 'response.completed',
            response: { status: 'completed', usage: { input_tokens: 7, output_tokens: 5 } },
          },
        ) + DONE,
    };
    const WHOLE: Readonly<Record<string, object>> = {
      '/v1/messages': {
        id: 'chatcmpl-1',
        type: 'message',
        content: [{ type: 'text', text: 'hello' }],
        stop_reason: 'end_turn',
        stop_sequence: 'END',
        usage: { input_tokens: 4, cache_read_input_tokens: 3, output_tokens: 5 },
      },
      '/v1/responses': {
        status: 'completed',
        output: [{ type: 'message', content: [{ type: 'output_text', text: 'hello' }] }],
        usage: { input_tokens: 7, output_tokens: 5 },
      },
      '/v1/messages/count_tokens': { input_tokens: 12 },
    };
    /** Answers on its own routes; on the chat's too, as any does. */
    const ownRoutes = (cut = 1e9) => {
      engine.script = async (asked) => {
        const { url, res } = asked;
        const whole = WHOLE[url];
        if (!whole || !has) {
          if (whole)
            res
              .writeHead(404, { 'content-type': 'application/json' })
              .end('{"error":{"message":"File Not Found"}}');
          else await sayHello(asked);
          return;
        }
        if ((JSON.parse(asked.body.toString()) as { stream?: boolean }).stream !== true) {
          res.setHeader('content-type', 'application/json');
          res.end(JSON.stringify(whole));
          return;
        }
        startStream(res);
        const bytes = Buffer.from(STREAMS[url] ?? '').subarray(0, cut);
        for (let at = 0; at < bytes.length; at += 11) {
          res.write(bytes.subarray(at, at + 11));
          await new Promise((resolve) => setImmediate(resolve));
        }
        res.end();
      };
    };
    const NATIVE = ['/v1/messages', '/v1/responses'] as const;

    it.each(NATIVE)(
      '%s: gets the body as it came, and its stream comes out as clients read it',
      async (route) => {
        ownRoutes();
        const body = bodyOf(route);
        const answer = await ask(route, body);
        const text = await answer.text();
        expect(engine.requests.map(({ url }) => url)).toEqual([route]);
        expect(engine.requests[0]!.body.toString()).toBe(body);
        expect(wordsOf(route, text)).toContain('hello');
        expect(text).not.toContain('[DONE]');
        const events = text
          .split('\n')
          .filter((line) => line.startsWith('data: '))
          .map((line) => JSON.parse(line.slice('data: '.length)) as Record<string, never>);
        if (route === '/v1/messages') {
          expect(events[0]).toMatchObject({
            message: { id: expect.stringMatching(/^msg_/) as string, model: 'chat-a' },
          });
          expect(events.at(-2)).toMatchObject({
            delta: { stop_reason: 'stop_sequence', stop_sequence: 'END' },
            usage: { input_tokens: 4, cache_read_input_tokens: 3, output_tokens: 5 },
          });
          expect(events.at(-1)).toEqual({ type: 'message_stop' });
        } else {
          expect(events.map(({ sequence_number: n }) => n)).toEqual(events.map((_, at) => at));
          expect(events.at(-1)).toMatchObject({
            type: 'response.completed',
            response: {
              output: [
                { type: 'reasoning' },
                { type: 'message' },
                { type: 'function_call', call_id: 't', name: 'f', arguments: '{"a":1}' },
              ],
            },
          });
        }
        const end = await stand.finished('chat-a', answer.headers.get('x-berth-call') ?? '');
        expect(end).toMatchObject({ outcome: 'completed', tokens: { prompt: 7, output: 5 } });
      },
    );

    it.each(NATIVE)('%s: tells a whole answer anew, and a cut one as cut', async (route) => {
      ownRoutes();
      const more = route === '/v1/responses' ? { max_output_tokens: 5 } : {};
      const answer = await ask(route, bodyOf(route, { stream: false, ...more }));
      expect(await answer.json()).toMatchObject(
        route === '/v1/messages'
          ? {
              id: expect.stringMatching(/^msg_/) as string,
              stop_reason: 'stop_sequence',
              content: [{ text: 'hello' }],
            }
          : { status: 'incomplete', output: [{ type: 'message', content: [{ text: 'hello' }] }] },
      );
      expect(engine.requests.map(({ url }) => url)).toEqual([route]);
      const end = await stand.finished('chat-a', answer.headers.get('x-berth-call') ?? '');
      expect(end.tokens).toMatchObject({ prompt: 7, output: 5 });
    });

    it.each([
      ['/v1/messages', 'event: error\ndata: {"type":"error"'],
      ['/v1/responses', 'event: response.failed'],
    ] as const)('%s: ends with its own error when the engine stops in the middle', async (route, words) => {
      ownRoutes(600);
      const socket = raw();
      socket.send(post(route, bodyOf(route)));
      const heard = await socket.ends();
      expect(heard).toContain(words);
      expect(heard).not.toMatch(/message_stop|response\.completed/);
    });

    it.each([
      ['/v1/messages', { output_config: { format: { type: 'json_schema', schema: {} } } }],
      ['/v1/responses', { text: { format: { type: 'json_object' } } }],
    ] as const)(
      '%s: is translated all the same when it asks for what such routes cannot do',
      async (route, more) => {
        ownRoutes();
        expect((await ask(route, bodyOf(route, { stream: false, ...more }))).status).toBe(200);
        expect(engine.requests.map(({ url }) => url)).toEqual(['/v1/chat/completions']);
      },
    );

    it('counts tokens by its own route, and sends the one tool that is named alone there too', async () => {
      ownRoutes();
      const tool = (name: string) => ({ name, input_schema: { type: 'object' } });
      const tools = { tools: [tool('a'), tool('b')], tool_choice: { type: 'tool', name: 'b' } };
      const counted = await ask(
        '/v1/messages/count_tokens',
        bodyOf('/v1/messages', { stream: false, ...tools }),
      );
      expect(await counted.json()).toEqual({ input_tokens: 12 });
      expect(engine.requests[0]!.url).toBe('/v1/messages/count_tokens');
      expect(JSON.parse(engine.requests[0]!.body.toString())).toMatchObject({
        tools: [tool('b')],
        tool_choice: { type: 'any' },
      });
    });

    it.each(NATIVE)(
      '%s: is asked in the chat’s form when it has not the route that its probe promised',
      async (route) => {
        has = false;
        ownRoutes();
        for (let n = 0; n < 2; n += 1) {
          const answer = await ask(route, bodyOf(route));
          expect(wordsOf(route, await answer.text())).toBe('hello');
        }
        expect(engine.requests.map(({ url }) => url)).toEqual([
          route,
          '/v1/chat/completions',
          '/v1/chat/completions',
        ]);
      },
    );
  });
});

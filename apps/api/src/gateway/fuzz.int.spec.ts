import { Agent, request } from 'node:http';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sayHello, ScriptedEngine } from '../testing/scripted-engine.js';
import { RawSocket, type Stand, startStand } from '../testing/stand.js';

const AT_ONCE = 25;
/** Properties may be asked for more, as in a long run by night. */
const CASES = Number(process.env['FAST_CHECK_RUNS'] || 10_000);
const WITHIN_MS = 10_000;

interface Case {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const turn = { role: 'user', content: 'hi' };
/** A sound body of each route, to be spoiled. */
const SOUND: Readonly<Record<string, Record<string, unknown>>> = {
  '/v1/chat/completions': { model: 'chat-a', messages: [turn], stream: true, stream_options: {}, n: 1 },
  '/v1/completions': { model: 'chat-a', prompt: 'hi', max_tokens: 5 },
  '/v1/embeddings': { model: 'embed', input: ['hi'], encoding_format: 'base64' },
  '/v1/responses': {
    model: 'chat-a',
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }],
    tools: [{ type: 'function', name: 'f', parameters: {} }],
    tool_choice: 'auto',
    text: { format: { type: 'json_schema', name: 'x', schema: {} } },
    reasoning: { effort: 'low' },
    include: [],
    stream: true,
  },
  '/v1/messages': {
    model: 'chat-a',
    max_tokens: 5,
    system: [{ type: 'text', text: 'x' }],
    messages: [turn, { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] }],
    tools: [{ name: 'f', input_schema: {} }],
    tool_choice: { type: 'any' },
    stop_sequences: ['x'],
    thinking: { type: 'enabled', budget_tokens: 1024 },
    metadata: { user_id: 'u' },
    stream: true,
  },
  '/v1/messages/count_tokens': { model: 'chat-a', messages: [turn] },
  '/api/chat': {
    model: 'chat-a',
    messages: [{ ...turn, images: ['aGk='] }],
    options: { num_predict: 3 },
    keep_alive: '5m',
    format: 'json',
    think: true,
  },
  '/api/generate': { model: 'chat-a', prompt: 'hi', images: [], raw: true, stream: false },
  '/api/embed': { model: 'embed', input: 'hi' },
  '/api/embeddings': { model: 'embed', prompt: 'hi' },
  '/api/show': { model: 'chat-a' },
};

const paths = Object.keys(SOUND);
const odd = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(null, '', {}, [], [[]], [null], -1, 1e308, 'data:image/png;base64,', { type: 'text' }, [
    turn,
    7,
  ]),
);

/** A sound body with some of its values, at any depth, replaced, and others added. */
const spoiled = (path: string): fc.Arbitrary<string> =>
  fc
    .record({
      wrong: fc.array(fc.tuple(fc.nat(), odd), { maxLength: 3 }),
      added: fc.dictionary(fc.string({ maxLength: 8 }), odd, { maxKeys: 2 }),
      cut: fc.option(fc.nat({ max: 60 }), { freq: 6 }),
    })
    .map(({ wrong, added, cut }) => {
      const body = structuredClone(SOUND[path] ?? {});
      for (const [which, value] of wrong) {
        const places = placesIn(body);
        const place = places[which % places.length];
        if (place) place.holder[place.key] = structuredClone(value);
      }
      delete added['berth'];
      const text = JSON.stringify({ ...body, ...added });
      return cut === null ? text : text.slice(0, -cut);
    });

type Holder = Record<string, unknown>;

function placesIn(value: unknown): { holder: Holder; key: string }[] {
  if (typeof value !== 'object' || value === null) return [];
  const holder = value as Holder;
  return Object.keys(holder).flatMap((key) => [{ holder, key }, ...placesIn(holder[key])]);
}

/** Bytes that HTTP lets a value have, beyond ASCII too; and what clients and proxies mean by some of them. */
const headerValue = fc.oneof(
  fc
    .string({ unit: 'binary', maxLength: 40 })
    .map((text) => text.replace(/[^\t\x20-\x7e\x80-\xff]/g, '').trim()),
  fc.constantFrom(
    ...[
      '',
      ',',
      ';',
      '*',
      '0',
      '-1',
      'gzip',
      'chunked',
      'close',
      'keep-alive, x-odd',
      'upgrade',
      'h2c',
      'null',
    ],
    ...['100-continue', 'bytes=0-', 'Bearer', 'Basic Og==', 'application/json; charset=utf-16', 'text/html'],
    ...['for=1.2.3.4', '1.2.3.4, ::1', 'https://evil.example', 'x'.repeat(4000)],
  ),
);
const NAMES = [
  ...['content-type', 'accept', 'accept-encoding', 'content-encoding', 'authorization', 'api-key', 'cookie'],
  ...['connection', 'keep-alive', 'te', 'upgrade', 'expect', 'range', 'if-none-match', 'origin'],
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-proto', 'traceparent', 'tracestate', 'user-agent'],
  ...['x-session-id', 'anthropic-version', 'anthropic-beta', 'openai-organization', 'x-stainless-timeout'],
  ...['access-control-request-method', 'access-control-request-headers', 'idempotency-key', 'x-odd'],
];
const anyHeaders = fc.dictionary(
  fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...NAMES) },
    { weight: 1, arbitrary: fc.stringMatching(/^[a-z!#$%&'*+.^_`|~-]{1,12}$/) },
  ),
  headerValue,
  { maxKeys: 3 },
);
/** Wrong keys from outside are answered later and later, which is right and would take all day here. */
const headers = anyHeaders.map((given) => {
  const isOutside = ['origin', 'forwarded', 'x-forwarded-for', 'x-forwarded-proto'].some(
    (name) => name in given,
  );
  const { authorization: _, 'api-key': __, ...others } = given;
  return isOutside ? others : given;
});
const path = fc.constantFrom(...paths);
const one: fc.Arbitrary<Case> = fc.oneof(
  {
    weight: 8,
    arbitrary: path.chain((at) =>
      fc.record({ method: fc.constant('POST'), path: fc.constant(at), headers, body: spoiled(at) }),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      method: fc.constantFrom('GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'POST'),
      path: fc.oneof(
        path,
        fc.constantFrom(
          '/v1/models',
          '/v1/models/%',
          '/v1/models/a%2Fb',
          '/api/tags',
          '/api',
          '/v1',
          '/api/pull',
        ),
        fc.webPath().map((text) => `/v1${text}`),
      ),
      headers,
      body: fc.oneof(fc.string(), fc.json()),
    }),
  },
);

describe('whatever is sent to the front door', () => {
  let engine: ScriptedEngine;
  let stand: Stand;
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

  beforeAll(async () => {
    engine = await new ScriptedEngine((asked) => {
      if (!asked.url.includes('embeddings') && !asked.url.includes('input_tokens')) return sayHello(asked);
      const answer = asked.url.includes('embeddings')
        ? { object: 'list', data: [{ embedding: [0.5] }], usage: { prompt_tokens: 1 } }
        : { input_tokens: 3 };
      asked.res.setHeader('content-type', 'application/json');
      asked.res.end(JSON.stringify(answer));
      return undefined;
    }).start();
    stand = await startStand({ models: ['chat-a', 'embed'], portOf: () => engine.port });
  });
  afterAll(async () => {
    agent.destroy();
    await stand.stop();
    engine.die();
  });

  const send = (what: Case): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const sent = request(
        {
          port: stand.port,
          agent,
          method: what.method,
          path: what.path,
          headers: { ...what.headers, host: 'localhost', 'content-length': Buffer.byteLength(what.body) },
          timeout: WITHIN_MS,
        },
        (res) => {
          let text = '';
          res.setEncoding('utf8');
          res.on('data', (chunk: string) => (text += chunk));
          res.on('end', () => resolve({ status: res.statusCode ?? 0, text }));
          res.on('error', reject);
        },
      );
      sent.on('timeout', () => sent.destroy(new Error(`No answer within ${WITHIN_MS} ms.`)));
      sent.on('error', reject);
      sent.end(what.body);
    });

  it('is answered at once, and never with a failure of ours', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(one, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (cases) => {
        engine.requests.length = 0;
        const answers = await Promise.all(cases.map(send));
        answers.forEach(({ status, text }, at) => {
          // 501 is the answer to what Ollama does with files, which is not done here.
          const fine = status < 500 || status === 501;
          expect(fine, `${status} ${text} to ${JSON.stringify(cases[at])}`).toBe(true);
          expect(text).not.toContain('"code":"internal"');
        });
      }),
      { numRuns: Math.ceil(CASES / AT_ONCE), endOnFailure: true },
    );
    expect((await fetch(`${stand.url}/health`)).status).toBe(200);
    // A bound for a machine that is busy with other things; alone it takes a tenth of it.
  }, 300_000);

  it('gets an answer or an end when it is no HTTP at all', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string({ minLength: 1, maxLength: 200 }).map((text) => `${text}\r\n\r\n`),
          fc
            .record({ line: fc.string({ maxLength: 30 }), header: fc.string({ maxLength: 60 }) })
            .map(({ line, header }) => `POST /v1/${line} HTTP/1.1\r\nhost: localhost\r\n${header}\r\n\r\n{}`),
          fc
            .constantFrom('-1', '1e3', '99999999999999999999', 'x')
            .map(
              (length) =>
                `POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n\r\n{}`,
            ),
        ),
        async (text) => {
          const socket = new RawSocket(stand.port);
          socket.send(text);
          socket.socket.end();
          const heard = await socket.ends();
          expect(heard).not.toMatch(/^HTTP\/1\.1 5/);
        },
      ),
      { numRuns: 100 },
    );
    expect((await fetch(`${stand.url}/health`)).status).toBe(200);
  });
});

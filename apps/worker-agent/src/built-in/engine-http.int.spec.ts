import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EngineBench, eventually } from '../engines/test-bench.js';
import { expectedText } from '../make-model/index.js';
import type { RunningEngine } from '../ports.js';

const bench = new EngineBench();
let talker: RunningEngine;
let endless: RunningEngine;
/** Its context is so long that what is seen to end there did not end by itself. */
let tireless: RunningEngine;
let embedder: RunningEngine;

beforeAll(async () => {
  const driver = bench.driver();
  [talker, endless, tireless, embedder] = await Promise.all([
    bench.start('chat-a', { slots: 2 }, driver),
    bench.start('endless', { contextTokens: 512 }, driver),
    bench.start('endless', { contextTokens: 8192 }, driver),
    bench.start('embed', { kind: 'embedding', contextTokens: 256, microBatch: 128 }, driver),
  ]);
}, 180_000);
afterAll(() => bench.close());

const client = (engine: RunningEngine) =>
  new OpenAI({
    baseURL: `http://127.0.0.1:${engine.port}/v1`,
    apiKey: bench.key(engine.residentId),
    maxRetries: 0,
  });

const post = (engine: RunningEngine, path: string, body: unknown, signal?: AbortSignal) =>
  fetch(`http://127.0.0.1:${engine.port}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bench.key(engine.residentId)}` },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });

type Frame = Record<string, unknown> & { choices: Record<string, unknown>[] };

const framesOf = (text: string): Frame[] =>
  text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice('data: '.length)) as Frame);

const hello = [{ role: 'user' as const, content: 'Hello?' }];

const inFlight = async (engine: RunningEngine) => (await engine.requestsInFlight()) ?? -1;

describe('chat completions of the built-in engine', () => {
  it('answers the openai client with what the model says', async () => {
    const answer = await client(talker).chat.completions.create({ model: 'any', messages: hello });
    expect(answer.choices).toHaveLength(1);
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { role: 'assistant', content: expectedText('chat-a').text },
    });
    expect(answer.usage?.total_tokens).toBe(
      (answer.usage?.prompt_tokens ?? 0) + (answer.usage?.completion_tokens ?? 0),
    );
    expect(answer).toMatchObject({ object: 'chat.completion', model: 'test/model' });
    expect(answer).toHaveProperty('timings.predicted_n', answer.usage?.completion_tokens);
  });

  it('streams the same text, with the role first, one finish reason and no usage', async () => {
    const text = await (await post(talker, '/v1/chat/completions', { messages: hello, stream: true })).text();
    expect(text.match(/data: \[DONE\]/g)).toHaveLength(1);
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
    const frames = framesOf(text);
    expect(frames[0]?.choices[0]).toMatchObject({ delta: { role: 'assistant' }, finish_reason: null });
    const deltas = frames.map((frame) => frame.choices[0]?.['delta'] as { content?: string } | undefined);
    expect(deltas.map((delta) => delta?.content ?? '').join('')).toBe(expectedText('chat-a').text);
    const reasons = frames.map((frame) => frame.choices[0]?.['finish_reason']).filter((r) => r !== null);
    expect(reasons).toEqual(['stop']);
    expect(frames.at(-1)).toHaveProperty('timings.prompt_n');
    expect(frames.every((frame) => !('usage' in frame))).toBe(true);
    expect(new Set(frames.map((frame) => frame['id'])).size).toBe(1);
  });

  it('streams usage in a last chunk without choices to those who ask', async () => {
    const stream = await client(talker).chat.completions.create({
      model: 'any',
      messages: hello,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.at(-1)?.choices).toEqual([]);
    expect(chunks.at(-1)?.usage?.completion_tokens).toBeGreaterThan(0);
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === undefined)).toBe(true);
  });

  it.each(['max_tokens', 'max_completion_tokens'])('ends with length at %s', async (name) => {
    const answer = (await (
      await post(talker, '/v1/chat/completions', { messages: hello, [name]: 2 })
    ).json()) as { choices: unknown[]; usage: unknown };
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'length' });
    expect(answer.usage).toMatchObject({ completion_tokens: 2 });
  });

  it('ends before a stop string that is spread over tokens', async () => {
    const answer = await client(talker).chat.completions.create({
      model: 'any',
      messages: hello,
      stop: ['first har', 'never said'],
    });
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: 'Hello from the ' },
    });
  });

  it('gives the same answer to a long conversation that it has in its cache and to a new one', async () => {
    const turns = [...hello, { role: 'assistant' as const, content: 'Yes.' }, ...hello];
    const first = await client(talker).chat.completions.create({ model: 'any', messages: turns });
    const again = await client(talker).chat.completions.create({ model: 'any', messages: turns });
    expect(again.choices[0]?.message.content).toBe(first.choices[0]?.message.content);
    expect(again.usage?.prompt_tokens_details?.cached_tokens).toBe((again.usage?.prompt_tokens ?? 0) - 1);
    expect(again.usage?.prompt_tokens).toBe(first.usage?.prompt_tokens);
  });

  it('takes developers for system, parts for text, and ignores null and unknown fields', async () => {
    const answer = (await (
      await post(talker, '/v1/chat/completions', {
        messages: [
          { role: 'developer', content: 'Be brief.' },
          { role: 'user', content: [{ type: 'text', text: 'Hello?' }] },
        ],
        stop: null,
        temperature: null,
        max_tokens: null,
        response_format: null,
        tools: null,
        seed: null,
        unheard_of: { of: 1 },
      })
    ).json()) as { choices: unknown[] };
    expect(answer.choices[0]).toMatchObject({ message: { content: expectedText('chat-a').text } });
  });

  it.each([
    ['broken JSON', '{"messages": ['],
    ['no JSON object', '[1]'],
    ['no messages', {}],
    ['an empty list of messages', { messages: [] }],
    ['a message that is none', { messages: ['hi'] }],
    ['an image', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] }],
    ['more choices than it gives', { messages: hello, n: 99 }],
    ['a bias that is none', { messages: hello, logit_bias: { word: 1 } }],
    ['a bias of a token that it has not', { messages: hello, logit_bias: { 99999999: 1 } }],
    ['likely tokens without log probabilities', { messages: hello, top_logprobs: 3 }],
    ['a choice of a tool without tools', { messages: hello, tool_choice: 'required' }],
    ['a grammar that is none', { messages: hello, grammar: 'root ::= (' }],
    ['the older functions', { messages: hello, functions: [{ name: 'f' }] }],
    ['a sampler that it has not', { messages: hello, mirostat: 2 }],
    [
      'a schema that it cannot hold',
      { messages: hello, response_format: { type: 'json_schema', json_schema: { schema: { not: {} } } } },
    ],
    ['a temperature that is no number', { messages: hello, temperature: 'hot' }],
    ['a response format that does not exist', { messages: hello, response_format: { type: 'xml' } }],
  ])('answers 400 to %s', async (_what, body) => {
    const reply = await post(talker, '/v1/chat/completions', body);
    expect(reply.status).toBe(400);
    expect(await reply.json()).toHaveProperty('error.type', 'invalid_request_error');
  });

  it('says how long a prompt is that does not fit, and how long it may be', async () => {
    const reply = await post(talker, '/v1/chat/completions', {
      messages: [{ role: 'user', content: 'long '.repeat(400) }],
    });
    expect(reply.status).toBe(400);
    const { error } = (await reply.json()) as {
      error: { n_prompt_tokens: number } & Record<string, unknown>;
    };
    expect(error).toMatchObject({ type: 'exceed_context_size_error', n_ctx: 512 });
    expect(error.n_prompt_tokens).toBeGreaterThan(512);
  });

  it('generates up to the end of the context and calls that length', async () => {
    const answer = await client(endless).chat.completions.create({ model: 'any', messages: hello });
    expect(answer.choices[0]?.finish_reason).toBe('length');
    expect(answer.usage?.total_tokens).toBe(512);
  });

  it('keeps to a JSON schema', async () => {
    const answer = await client(talker).chat.completions.create({
      model: 'any',
      messages: hello,
      max_completion_tokens: 200,
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'yes', schema: { type: 'object', properties: { ok: { type: 'boolean' } } } },
      },
    });
    const text = answer.choices[0]?.message.content ?? '';
    expect(text).toMatch(/^\s*\{/);
    if (answer.choices[0]?.finish_reason === 'stop') expect(JSON.parse(text)).toHaveProperty('ok');
  });

  it('ends an answer with its JSON, and holds a grammar', async () => {
    const ask = async (more: object) => {
      const reply = await post(talker, '/v1/chat/completions', { messages: hello, max_tokens: 60, ...more });
      expect(reply.status).toBe(200);
      return ((await reply.json()) as OpenAI.ChatCompletion).choices[0]!;
    };
    const enumerated = { type: 'object', properties: { kind: { enum: ['a'] } } };
    const held = await ask({
      response_format: { type: 'json_schema', json_schema: { name: 'k', schema: enumerated } },
    });
    expect(held.finish_reason).toBe('stop');
    expect(held.message.content).toMatch(/\}$/);
    expect(JSON.parse(held.message.content!)).toEqual({ kind: 'a' });
    expect((await ask({ grammar: 'root ::= "Hello"' })).message.content).toBe('Hello');
  });

  it('gives several choices, streamed and not', async () => {
    const answer = await client(talker).chat.completions.create({ model: 'any', messages: hello, n: 2 });
    const { text } = expectedText('chat-a');
    expect(answer.choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, text],
      [1, text],
    ]);
    const frames = framesOf(
      await (await post(talker, '/v1/chat/completions', { messages: hello, n: 2, stream: true })).text(),
    );
    for (const index of [0, 1]) {
      const own = frames.flatMap(({ choices }) => choices).filter((choice) => choice['index'] === index);
      expect(own.map(({ delta }) => (delta as { content?: string }).content ?? '').join('')).toBe(text);
      expect(own.filter((choice) => choice['finish_reason'] !== null)).toHaveLength(1);
    }
  });

  it('tells how likely each token was, whole, streamed and in plain completions', async () => {
    const asked = { model: 'any', messages: hello, logprobs: true, top_logprobs: 2, temperature: 0 };
    const answer = await client(talker).chat.completions.create(asked);
    const tokens = answer.choices[0]?.logprobs?.content ?? [];
    expect(tokens.map(({ token }) => token).join('')).toBe(expectedText('chat-a').text);
    for (const { logprob, bytes, token, top_logprobs: top } of tokens) {
      expect(logprob).toBeLessThanOrEqual(0);
      expect(Buffer.from(bytes ?? []).toString()).toBe(token);
      expect(top[0]?.token).toBe(token);
    }
    const frames = framesOf(
      await (await post(talker, '/v1/chat/completions', { ...asked, stream: true })).text(),
    );
    const told = frames.flatMap(({ choices }) =>
      choices.flatMap((c) => (c['logprobs'] as { content: { token: string }[] } | undefined)?.content ?? []),
    );
    expect(told.map(({ token }) => token).join('')).toBe(expectedText('chat-a').text);
    const plain = await client(talker).completions.create({
      model: 'any',
      prompt: 'Hello',
      logprobs: 1,
      max_tokens: 3,
    });
    expect(plain.choices[0]?.logprobs?.tokens?.join('')).toBe(plain.choices[0]?.text);
  });

  it('says nothing that a bias forbids, and the same again with the same seed', async () => {
    const first = { messages: hello, max_tokens: 1, temperature: 0 };
    const tokenOf = async (more: object) => {
      const reply = await post(talker, '/v1/chat/completions', {
        ...first,
        logprobs: true,
        top_logprobs: 1,
        ...more,
      });
      return ((await reply.json()) as OpenAI.ChatCompletion).choices[0]?.logprobs?.content?.[0]?.token;
    };
    const props = await fetch(`http://127.0.0.1:${talker.port}/props`, {
      headers: { authorization: `Bearer ${bench.key(talker.residentId)}` },
    });
    const { n_vocab: vocabulary } = (await props.json()) as { n_vocab: number };
    const half = Math.floor(vocabulary / 2);
    const forbid = (from: number, to: number) =>
      tokenOf({
        logit_bias: Object.fromEntries(Array.from({ length: to - from }, (_, i) => [from + i, -100])),
      });
    const usual = await tokenOf({});
    const halves = [await forbid(0, half), await forbid(half, vocabulary)];
    // The usual token is in one of the halves, and is not said where that one is forbidden.
    expect(halves.filter((token) => token === usual)).toHaveLength(1);
    const free = { messages: hello, temperature: 5, top_k: 0, min_p: 0, top_p: 1, max_tokens: 12, seed: 7 };
    const said = async () =>
      ((await (await post(talker, '/v1/chat/completions', free)).json()) as OpenAI.ChatCompletion).choices[0]
        ?.message.content;
    expect(await said()).toBe(await said());
  });

  it('counts the tokens of a chat without answering it', async () => {
    const counted = await post(talker, '/v1/chat/completions/input_tokens', { messages: hello });
    const answer = await client(talker).chat.completions.create({ model: 'any', messages: hello });
    expect(await counted.json()).toHaveProperty('input_tokens', answer.usage?.prompt_tokens);
  });

  it('says which stop string ended an answer', async () => {
    const reply = await post(talker, '/v1/chat/completions', { messages: hello, stop: ['never', 'first'] });
    expect(((await reply.json()) as Frame).choices[0]).toMatchObject({
      finish_reason: 'stop',
      stop_reason: 'first',
    });
  });

  it('frees the slot of a client that leaves in mid-stream', async () => {
    const leave = new AbortController();
    const reply = await post(
      tireless,
      '/v1/chat/completions',
      { messages: hello, stream: true },
      leave.signal,
    );
    await reply.body!.getReader().read();
    expect(await inFlight(tireless)).toBe(1);
    leave.abort();
    await eventually('the slot is free', async () => (await inFlight(tireless)) === 0, 3000);
    const next = await post(tireless, '/v1/completions', { prompt: 'One', max_tokens: 1 });
    expect(await next.json()).toHaveProperty('usage.completion_tokens', 1);
  });

  it('serves its queue in order, and leaves out a client that left it', async () => {
    const release = new AbortController();
    const first = await post(tireless, '/v1/completions', { prompt: 'One', stream: true }, release.signal);
    await first.body!.getReader().read();

    const order: string[] = [];
    const queue = async (name: string, signal?: AbortSignal) => {
      const before = await inFlight(tireless);
      const done = post(tireless, '/v1/completions', { prompt: 'One', max_tokens: 1 }, signal).then(
        async (reply) => {
          await reply.text();
          order.push(name);
        },
        () => order.push(`${name} left`),
      );
      await eventually(`${name} waits`, async () => (await inFlight(tireless)) === before + 1);
      return { done };
    };
    const leave = new AbortController();
    const waiting = [await queue('a'), await queue('b', leave.signal), await queue('c')];
    leave.abort();
    await eventually('b is out of the queue', async () => (await inFlight(tireless)) === 3, 3000);
    release.abort();
    await Promise.all(waiting.map(({ done }) => done));
    expect(order).toEqual(['b left', 'a', 'c']);
  });

  it('answers two at once on two slots, each with its own text', async () => {
    const answers = await Promise.all(
      ['Hello?', 'Good morning to all of you'].map((content) =>
        client(talker).chat.completions.create({ model: 'any', messages: [{ role: 'user', content }] }),
      ),
    );
    for (const answer of answers) {
      expect(answer.choices[0]?.message.content).toBe(expectedText('chat-a').text);
    }
  });

  const tools = [
    {
      type: 'function' as const,
      function: { name: 'get_berth', parameters: { type: 'object', properties: {} } },
    },
  ];

  it('gives a tool call of the model as one', async () => {
    const answer = await client(talker).chat.completions.create({ model: 'any', messages: hello, tools });
    const [choice] = answer.choices;
    expect(choice?.finish_reason).toBe('tool_calls');
    const [call] = choice?.message.tool_calls ?? [];
    expect(call).toMatchObject({ type: 'function', function: { name: 'get_berth' } });
    expect(call?.type === 'function' && JSON.parse(call.function.arguments)).toEqual(
      expectedText('chat-a').toolCall?.arguments,
    );
  });

  it('streams a tool call with its index, id and name once', async () => {
    const stream = client(talker).chat.completions.stream({ model: 'any', messages: hello, tools });
    const message = await stream.finalMessage();
    expect(message.tool_calls).toHaveLength(1);
    expect(message.tool_calls?.[0]).toMatchObject({ function: { name: 'get_berth' } });
  });

  it.each([['required'], [{ type: 'function', function: { name: 'get_berth' } }]] as const)(
    'calls a tool when it must: %j',
    async (choice) => {
      const schema = {
        type: 'object',
        properties: { name: { type: 'string', maxLength: 3 } },
        required: ['name'],
      };
      const other = { type: 'function' as const, function: { name: 'other', parameters: schema } };
      const answer = await client(talker).chat.completions.create({
        model: 'any',
        messages: hello,
        tools: [other, { type: 'function', function: { name: 'get_berth', parameters: schema } }],
        tool_choice: choice,
        parallel_tool_calls: false,
        temperature: 0,
        max_completion_tokens: 200,
      });
      const [call] = answer.choices[0]?.message.tool_calls ?? [];
      if (call?.type !== 'function') throw new Error('no call');
      if (choice !== 'required') expect(call.function.name).toBe('get_berth');
      expect(JSON.parse(call.function.arguments)).toHaveProperty('name');
      expect(answer.choices[0]?.finish_reason).toBe('tool_calls');
    },
  );

  it('answers in words after the tool has', async () => {
    const answer = await client(talker).chat.completions.create({
      model: 'any',
      tools,
      messages: [
        ...hello,
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'c', type: 'function', function: { name: 'get_berth', arguments: '{"name":"A"}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'c', content: 'free' },
      ],
    });
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: expectedText('chat-a').text },
    });
  });

  it('calls no tool when told to call none', async () => {
    const answer = await client(talker).chat.completions.create({
      model: 'any',
      messages: hello,
      tools,
      tool_choice: 'none',
    });
    expect(answer.choices[0]?.message.content).toBe(expectedText('chat-a').text);
  });

  it('lists its model, and knows nothing of other paths', async () => {
    const list = await client(talker).models.list();
    expect(list.data.map((model) => model.id)).toEqual(['test/model']);
    expect((await post(talker, '/v1/nothing', {})).status).toBe(404);
  });

  it('refuses what it was not started for', async () => {
    expect((await post(talker, '/v1/embeddings', { input: 'x' })).status).toBe(400);
    expect((await post(embedder, '/v1/chat/completions', { messages: hello })).status).toBe(400);
  });

  it('writes no word of a prompt or an answer', () => {
    const log = readFileSync(join(bench.home, 'engines', `${talker.residentId}.log`), 'utf8');
    expect(log).toContain('model loaded');
    expect(log).not.toContain('Be brief');
    expect(log).not.toContain('Good morning');
    expect(log).not.toContain('harbour');
  });
});

describe('an engine that is told to stop in the middle of an answer', () => {
  it('ends the stream with an error and no end mark, and exits in order', async () => {
    const engine = await bench.start('endless', { contextTokens: 8192 });
    const reply = await post(engine, '/v1/chat/completions', { messages: hello, stream: true });
    const reader: ReadableStreamDefaultReader<Uint8Array> = reply.body!.getReader();
    const decoder = new TextDecoder();
    let text = decoder.decode((await reader.read()).value);
    const stopped = engine.stop();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      text += decoder.decode(value);
    }
    await stopped;
    expect(text).toContain('"error"');
    expect(text).not.toContain('[DONE]');
    expect(await engine.exited).toEqual({ code: 0 });
  });
});

describe('plain completions of the built-in engine', () => {
  it('takes a text, several, or token ids, and refuses echo', async () => {
    const one = await client(talker).completions.create({ model: 'any', prompt: 'Hello', max_tokens: 30 });
    expect(one.choices[0]?.text).toContain(expectedText('chat-a').text);
    const two = await client(talker).completions.create({ model: 'any', prompt: ['a', 'b'], max_tokens: 2 });
    expect(two.choices.map((choice) => choice.index)).toEqual([0, 1]);
    const ids = await client(talker).completions.create({ model: 'any', prompt: [5, 6], max_tokens: 1 });
    expect(ids.usage?.prompt_tokens).toBeGreaterThanOrEqual(2);
    expect((await post(talker, '/v1/completions', { prompt: 'x', echo: true })).status).toBe(400);
    expect((await post(talker, '/v1/completions', { prompt: [99_999_999] })).status).toBe(400);
  });

  it('streams with one finish reason and one end', async () => {
    const text = await (
      await post(talker, '/v1/completions', { prompt: 'Hello', stream: true, max_tokens: 3 })
    ).text();
    const reasons = framesOf(text).map((frame) => frame.choices[0]?.['finish_reason']);
    expect(reasons.filter((reason) => reason !== null)).toEqual(['length']);
    expect(text.match(/\[DONE\]/g)).toHaveLength(1);
  });
});

describe('embeddings of the built-in engine', () => {
  it('gives the same unit vectors as floats and as base64', async () => {
    const openai = client(embedder);
    const floats = await openai.embeddings.create({
      model: 'any',
      input: ['ship', 'tide'],
      encoding_format: 'float',
    });
    // The client asks for base64 by itself and decodes it.
    const decoded = await openai.embeddings.create({ model: 'any', input: ['ship', 'tide'] });
    expect(floats.data.map((item) => item.index)).toEqual([0, 1]);
    for (const [i, item] of floats.data.entries()) {
      expect(Math.hypot(...item.embedding)).toBeCloseTo(1, 5);
      for (const [j, value] of item.embedding.entries()) {
        expect(decoded.data[i]?.embedding[j]).toBeCloseTo(value, 6);
      }
    }
    expect(floats.data[0]?.embedding).not.toEqual(floats.data[1]?.embedding);
    expect(floats.usage.prompt_tokens).toBeGreaterThan(0);
  });

  it('takes one text, and token ids', async () => {
    const one = await client(embedder).embeddings.create({ model: 'any', input: 'ship' });
    expect(one.data).toHaveLength(1);
    const ids = await client(embedder).embeddings.create({ model: 'any', input: [[5, 6], [7]] });
    expect(ids.data).toHaveLength(2);
  });

  it.each([
    ['an empty text', ''],
    ['an empty list', []],
    ['a list with an empty text', ['ship', '']],
    ['no text', { text: 'ship' }],
    ['a token outside of the vocabulary', [99_999_999]],
  ])('answers 400 to %s', async (_what, input) => {
    expect((await post(embedder, '/v1/embeddings', { input })).status).toBe(400);
  });

  it('says how long an input may be: one batch', async () => {
    const reply = await post(embedder, '/v1/embeddings', { input: 'long '.repeat(100) });
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({ error: { type: 'exceed_context_size_error', n_ctx: 128 } });
  });
});

import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import type { AIMessageChunk } from '@langchain/core/messages';
import { APICallError, embed, generateText, jsonSchema, Output, streamText, tool } from 'ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectedText } from '../../apps/worker-agent/src/make-model/index.js';
import { expectInvariants } from '../support/log.js';
import { removeFolder, startStack, type Stack } from '../support/stack.js';
import { waitFor } from '../support/wait.js';

const CHAT = 'quay/talker';
const THINK = 'quay/thinker';
const EMBED = 'quay/embedder';
const RERANK = 'quay/ranker';
const HELLO = 'Good morning';
const SAID = expectedText('chat-a').text;
const SCHEMA = {
  type: 'object' as const,
  properties: { name: { type: 'string' as const } },
  required: ['name'],
  additionalProperties: false,
};

/** Each client as its own documentation sets it up, with only the address changed; the first call of each model is cold. */
describe('real clients against a real stack with real engines', () => {
  let stack: Stack;
  let openai: OpenAI;
  let anthropic: Anthropic;
  let ollama: Ollama;

  beforeAll(async () => {
    stack = await startStack({
      models: { [CHAT]: 'chat-a', [THINK]: 'think', [EMBED]: 'embed', [RERANK]: 'rerank' },
    });
    openai = new OpenAI({ baseURL: `${stack.url}/v1`, apiKey: 'none' });
    anthropic = new Anthropic({ baseURL: stack.url, apiKey: 'none' });
    ollama = new Ollama({ host: stack.url });
  });
  afterAll(async () => {
    await stack.stop();
    await expectInvariants(stack.home);
    removeFolder(stack.home);
  });

  it('ranks documents by a model that can, cold, and says of another what it is for', async () => {
    const rank = (model: string) =>
      openai.post('/rerank', {
        body: { model, query: 'harbour', documents: ['a harbour', 'a desert', 'the sea'], top_n: 2 },
        maxRetries: 0,
      });
    const { results, usage } = (await rank(RERANK)) as {
      results: { index: number; relevance_score: number }[];
      usage: { prompt_tokens: number };
    };
    expect(results).toHaveLength(2);
    expect(results[0]!.relevance_score).toBeGreaterThanOrEqual(results[1]!.relevance_score);
    expect(usage.prompt_tokens).toBeGreaterThan(0);
    await expect(rank(EMBED)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('is a model for embedding') as string,
    });
  });

  describe('openai', () => {
    const messages = [{ role: 'user' as const, content: HELLO }];

    it('answers a cold call in one attempt, and says how long the load took', async () => {
      const { data, response } = await openai.chat.completions
        .create({ model: CHAT, messages }, { maxRetries: 0 })
        .withResponse();
      expect(data.choices[0]?.message.content).toBe(SAID);
      expect(Number(response.headers.get('x-berth-cold'))).toBeGreaterThan(0);
      const warm = await openai.chat.completions.create({ model: CHAT, messages }).withResponse();
      expect(warm.response.headers.get('x-berth-cold')).toBe('0');
    });

    it('streams a cold model that thinks, with its reasoning parted', async () => {
      const stream = await openai.chat.completions.create(
        { model: THINK, messages, stream: true },
        { maxRetries: 0 },
      );
      let text = '';
      let reasoning = '';
      for await (const { choices } of stream) {
        const delta = choices[0]?.delta as { content?: string; reasoning_content?: string } | undefined;
        text += delta?.content ?? '';
        reasoning += delta?.reasoning_content ?? '';
      }
      const expected = expectedText('think');
      expect(text).not.toContain('think>');
      expect(expected.text).toContain(text);
      expect(reasoning).toContain('tide table');
      const whole = await openai.chat.completions.create({ model: THINK, messages });
      expect(whole.choices[0]?.message.content).toBe(text);
      expect(whole.choices[0]?.message).toHaveProperty('reasoning_content', reasoning);
    });

    it('calls tools, holds schemas, tells log probabilities and embeds in base64', async () => {
      const called = await openai.chat.completions
        .stream({
          model: CHAT,
          messages,
          tools: [{ type: 'function', function: { name: 'get_berth', parameters: SCHEMA } }],
        })
        .finalMessage();
      expect(called.tool_calls?.[0]).toMatchObject({ function: { name: 'get_berth' } });
      const held = await openai.chat.completions.create({
        model: CHAT,
        messages,
        logprobs: true,
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'k', schema: { type: 'object', properties: { kind: { enum: ['a'] } } } },
        },
      });
      expect(JSON.parse(held.choices[0]?.message.content ?? '')).toEqual({ kind: 'a' });
      expect(held.choices[0]?.logprobs?.content?.length).toBeGreaterThan(0);
      const floats = await openai.embeddings.create({ model: EMBED, input: HELLO, encoding_format: 'float' });
      const coded = await openai.embeddings.create({ model: EMBED, input: HELLO });
      const [a, b] = [floats.data[0]!.embedding, coded.data[0]!.embedding];
      expect(b).toHaveLength(a.length);
      b.forEach((value, at) => expect(value).toBeCloseTo(a[at] ?? 0, 5));
    });

    it('gives several choices, and the usage of a stream to who asks for it', async () => {
      const asked = { model: CHAT, messages, n: 2 };
      const whole = await openai.chat.completions.create(asked);
      expect(whole.choices.map(({ index }) => index).sort()).toEqual([0, 1]);
      const texts = ['', ''];
      let usage: OpenAI.CompletionUsage | null | undefined;
      for await (const chunk of await openai.chat.completions.create({
        ...asked,
        stream: true,
        stream_options: { include_usage: true },
      })) {
        for (const { index, delta } of chunk.choices)
          texts[index] = `${texts[index] ?? ''}${delta.content ?? ''}`;
        usage = chunk.usage ?? usage;
      }
      expect(texts).toEqual(whole.choices.map(({ message }) => message.content));
      expect(usage?.completion_tokens).toBe(whole.usage?.completion_tokens);
    });

    it('responds, streamed and not, with reasoning, tools and structured output', async () => {
      const whole = await openai.responses.create({ model: THINK, input: HELLO, instructions: 'Be brief.' });
      expect(whole.status).toBe('completed');
      expect(whole.output.map(({ type }) => type)).toEqual(['reasoning', 'message']);
      expect(expectedText('think').text).toContain(whole.output_text);
      expect(whole.usage?.output_tokens).toBeGreaterThan(0);
      const stream = openai.responses.stream({ model: THINK, input: [{ role: 'user', content: HELLO }] });
      const numbers: number[] = [];
      for await (const event of stream) numbers.push(event.sequence_number);
      expect(numbers).toEqual(numbers.map((_, at) => at));
      const final = await stream.finalResponse();
      expect(final.output_text).toBe(whole.output_text);

      const tools = [
        { type: 'function' as const, name: 'get_berth', parameters: SCHEMA, strict: true },
        { type: 'web_search' as const },
      ];
      const calling = openai.responses.stream({ model: CHAT, input: HELLO, tools });
      const call = (await calling.finalResponse()).output[0];
      if (call?.type !== 'function_call') throw new Error('no call');
      expect(JSON.parse(call.arguments)).toEqual({ name: 'A' });
      const answered = await openai.responses.create({
        model: CHAT,
        tools,
        input: [
          { role: 'user', content: HELLO },
          { type: 'function_call', call_id: call.call_id, name: call.name, arguments: call.arguments },
          { type: 'function_call_output', call_id: call.call_id, output: 'free' },
        ],
      });
      expect(answered.output_text).toBe(SAID);
      const cut = await openai.responses.create({ model: CHAT, input: HELLO, max_output_tokens: 2 });
      expect(cut).toMatchObject({
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
      });
      await expect(
        openai.responses.create({ model: CHAT, input: HELLO, previous_response_id: 'resp_1' }),
      ).rejects.toMatchObject({ status: 400, param: 'previous_response_id' });
    });

    it('is told of an unknown model and of a prompt that is too long in words that it knows', async () => {
      await expect(openai.chat.completions.create({ model: 'quay/none', messages })).rejects.toMatchObject({
        status: 404,
        code: 'model_not_found',
      });
      const long = [{ role: 'user' as const, content: 'long '.repeat(30_000) }];
      await expect(openai.chat.completions.create({ model: CHAT, messages: long })).rejects.toMatchObject({
        status: 400,
        code: 'context_length_exceeded',
      });
    });

    it('throws its own typed errors for what cannot be served', async () => {
      const { BadRequestError, NotFoundError } = OpenAI;
      const picture = {
        type: 'image_url' as const,
        image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' },
      };
      const shown = [{ role: 'user' as const, content: [picture] }];
      const ask = (body: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming>) =>
        openai.chat.completions.create({ model: CHAT, messages, ...body });
      await expect(ask({ model: 'quay/none' })).rejects.toBeInstanceOf(NotFoundError);
      await expect(ask({ messages: shown })).rejects.toBeInstanceOf(BadRequestError);
      await expect(ask({ model: EMBED })).rejects.toBeInstanceOf(BadRequestError);
      await expect(openai.embeddings.create({ model: EMBED, input: '' })).rejects.toBeInstanceOf(
        BadRequestError,
      );
      await expect(openai.models.retrieve('quay/none')).rejects.toBeInstanceOf(NotFoundError);
      expect((await openai.models.retrieve(CHAT)).id).toBe(CHAT);
    });
  });

  describe('@anthropic-ai/sdk', () => {
    const messages = [{ role: 'user' as const, content: HELLO }];

    it('gets messages, streamed and not, with thinking apart', async () => {
      const whole = await anthropic.messages.create({ model: THINK, max_tokens: 200, messages });
      expect(whole.content.map(({ type }) => type)).toEqual(['thinking', 'text']);
      expect(whole.stop_reason).toBe('end_turn');
      const stream = anthropic.messages.stream({
        model: THINK,
        max_tokens: 200,
        system: 'Be brief.',
        messages,
      });
      const begun: number[] = [];
      stream.on('streamEvent', (event) => {
        if (event.type === 'message_start') begun.push(event.message.usage.input_tokens);
      });
      const final = await stream.finalMessage();
      expect(final.content).toEqual(whole.content);
      expect(final.usage.output_tokens).toBe(whole.usage.output_tokens);
      // The engine tells its prompt with its first word; at the end what the cache had of it is counted apart.
      const { input_tokens: input } = await anthropic.messages.countTokens({
        model: THINK,
        system: 'Be brief.',
        messages,
      });
      expect(begun).toEqual([input]);
      expect(final.usage.input_tokens + (final.usage.cache_read_input_tokens ?? 0)).toBe(input);
    });

    it('calls tools and answers their results', async () => {
      const tools = [{ name: 'get_berth', description: 'Where a ship lies', input_schema: SCHEMA }];
      const asked = await anthropic.messages
        .stream({ model: CHAT, max_tokens: 200, messages, tools, tool_choice: { type: 'auto' } })
        .finalMessage();
      expect(asked.stop_reason).toBe('tool_use');
      const [use] = asked.content;
      if (use?.type !== 'tool_use') throw new Error('no call');
      expect(use.input).toEqual({ name: 'A' });
      const answered = await anthropic.messages.create({
        model: CHAT,
        max_tokens: 200,
        tools,
        messages: [
          ...messages,
          { role: 'assistant', content: asked.content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: 'free' }] },
        ],
      });
      expect(answered.content).toEqual([{ type: 'text', text: SAID }]);
    });

    it('says why it stopped, counts tokens and lists models', async () => {
      const cut = await anthropic.messages.create({ model: CHAT, max_tokens: 2, messages });
      expect(cut.stop_reason).toBe('max_tokens');
      const word = SAID.split(' ')[2] ?? '';
      const stopped = await anthropic.messages.create({
        model: CHAT,
        max_tokens: 200,
        messages,
        stop_sequences: [word],
      });
      expect(stopped).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: word });
      const counted = await anthropic.messages.countTokens({ model: CHAT, messages });
      const usage = cut.usage;
      expect(counted.input_tokens).toBe(usage.input_tokens + (usage.cache_read_input_tokens ?? 0));
      const listed: string[] = [];
      for await (const model of anthropic.models.list()) listed.push(model.id);
      expect(listed).toContain(CHAT);
    });

    it('gets errors in its own shape', async () => {
      await expect(
        anthropic.messages.create({ model: 'quay/none', max_tokens: 5, messages }),
      ).rejects.toMatchObject({ status: 404, error: { error: { type: 'not_found_error' } } });
      const long = [{ role: 'user' as const, content: 'long '.repeat(30_000) }];
      await expect(anthropic.messages.create({ model: CHAT, max_tokens: 5, messages: long })).rejects.toThrow(
        /prompt is too long/,
      );
      const source = { type: 'base64' as const, media_type: 'image/png' as const, data: 'iVBORw0KGgo=' };
      const shown = [{ role: 'user' as const, content: [{ type: 'image' as const, source }] }];
      const refused = anthropic.messages.create({ model: CHAT, max_tokens: 5, messages: shown });
      await expect(refused).rejects.toBeInstanceOf(Anthropic.BadRequestError);
      const unknown = anthropic.messages.create({ model: 'quay/none', max_tokens: 5, messages });
      await expect(unknown).rejects.toBeInstanceOf(Anthropic.NotFoundError);
    });
  });

  it('the AI SDK generates, streams, calls tools and embeds', async () => {
    const berth = createOpenAICompatible({ name: 'berth', baseURL: `${stack.url}/v1`, includeUsage: true });
    const whole = await generateText({ model: berth(CHAT), prompt: HELLO });
    expect(whole.text).toBe(SAID);
    expect(whole.usage.outputTokens).toBeGreaterThan(0);
    const stream = streamText({ model: berth(THINK), prompt: HELLO });
    let text = '';
    for await (const part of stream.textStream) text += part;
    expect(expectedText('think').text).toContain(text);
    expect(await stream.reasoningText).toContain('tide table');
    const called = await generateText({
      model: berth(CHAT),
      prompt: HELLO,
      tools: { get_berth: tool({ inputSchema: jsonSchema<{ name: string }>(SCHEMA) }) },
    });
    expect(called.toolCalls[0]).toMatchObject({ toolName: 'get_berth', input: { name: 'A' } });
    const { embedding } = await embed({ model: berth.embeddingModel(EMBED), value: HELLO });
    expect(embedding.length).toBeGreaterThan(0);
    const streamed = streamText({
      model: berth(CHAT),
      prompt: HELLO,
      tools: { get_berth: tool({ inputSchema: jsonSchema<{ name: string }>(SCHEMA) }) },
    });
    await streamed.consumeStream();
    expect(await streamed.toolCalls).toMatchObject([{ toolName: 'get_berth', input: { name: 'A' } }]);
    expect((await streamed.usage).outputTokens).toBeGreaterThan(0);
  });

  it('the AI SDK holds schemas, and throws its own errors without trying again', async () => {
    const berth = createOpenAICompatible({
      name: 'berth',
      baseURL: `${stack.url}/v1`,
      supportsStructuredOutputs: true,
    });
    const schema = jsonSchema<{ kind: string }>({
      type: 'object',
      properties: { kind: { enum: ['a'] } },
      required: ['kind'],
      additionalProperties: false,
    });
    const held = await generateText({ model: berth(CHAT), prompt: HELLO, output: Output.object({ schema }) });
    expect(held.output).toEqual({ kind: 'a' });
    const failed = await generateText({ model: berth('quay/none'), prompt: HELLO }).catch((e: unknown) => e);
    if (!APICallError.isInstance(failed)) throw new Error('not its own error');
    expect(failed).toMatchObject({ statusCode: 404, isRetryable: false });
    expect(failed.message).toContain('There is no model');
    const picture = { type: 'image' as const, image: Buffer.from('iVBORw0KGgo=', 'base64') };
    const shown = [{ role: 'user' as const, content: [picture] }];
    const refused = await generateText({ model: berth(CHAT), messages: shown }).catch((e: unknown) => e);
    expect(refused).toMatchObject({ statusCode: 400, isRetryable: false });
  });

  it('LangChain invokes, streams, calls tools and embeds', async () => {
    const configuration = { baseURL: `${stack.url}/v1` };
    const model = new ChatOpenAI({ model: CHAT, apiKey: 'none', configuration });
    expect((await model.invoke(HELLO)).content).toBe(SAID);
    let text = '';
    for await (const chunk of await model.stream(HELLO)) text += chunk.text;
    expect(text).toBe(SAID);
    const bound = model.bindTools([
      { type: 'function', function: { name: 'get_berth', parameters: SCHEMA } },
    ]);
    expect((await bound.invoke(HELLO)).tool_calls?.[0]).toMatchObject({
      name: 'get_berth',
      args: { name: 'A' },
    });
    const embeddings = new OpenAIEmbeddings({ model: EMBED, apiKey: 'none', configuration });
    expect((await embeddings.embedQuery(HELLO)).length).toBeGreaterThan(0);
    let pieces: AIMessageChunk | undefined;
    for await (const chunk of await bound.stream(HELLO)) pieces = pieces?.concat(chunk) ?? chunk;
    expect(pieces?.tool_calls?.[0]).toMatchObject({ name: 'get_berth', args: { name: 'A' } });
    expect(pieces).toMatchObject({ usage_metadata: { output_tokens: expect.any(Number) as number } });
  });

  it('LangChain holds schemas, tells log probabilities and several choices, and names its errors', async () => {
    const configuration = { baseURL: `${stack.url}/v1` };
    const of = (more: object) => new ChatOpenAI({ model: CHAT, apiKey: 'none', configuration, ...more });
    const held = of({}).withStructuredOutput(
      {
        title: 'k',
        type: 'object',
        properties: { kind: { enum: ['a'] } },
        required: ['kind'],
        additionalProperties: false,
      },
      { method: 'jsonSchema' },
    );
    expect(await held.invoke(HELLO)).toEqual({ kind: 'a' });
    const told = await of({ logprobs: true }).invoke(HELLO);
    expect((told.response_metadata['logprobs'] as { content: unknown[] }).content.length).toBeGreaterThan(0);
    expect(told).toMatchObject({ usage_metadata: { output_tokens: expect.any(Number) as number } });
    const { generations } = await of({ n: 2 }).generate([[['human', HELLO]]]);
    expect(generations[0]).toHaveLength(2);
    await expect(of({ model: 'quay/none' }).invoke(HELLO)).rejects.toMatchObject({
      status: 404,
      lc_error_code: 'MODEL_NOT_FOUND',
    });
    const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
    await expect(of({}).invoke([{ role: 'user', content: [picture] }])).rejects.toMatchObject({
      status: 400,
    });
  });

  describe('ollama', () => {
    const messages = [{ role: 'user', content: HELLO }];

    it('chats, streamed and not, with thoughts, tools and figures', async () => {
      const whole = await ollama.chat({ model: `${CHAT}:latest`, messages, options: { temperature: 0 } });
      expect(whole).toMatchObject({ done: true, done_reason: 'stop', message: { content: SAID } });
      expect(whole.eval_count).toBeGreaterThan(0);
      expect(whole.total_duration).toBeGreaterThan(0);
      let text = '';
      let thoughts = '';
      for await (const line of await ollama.chat({ model: THINK, messages, stream: true })) {
        text += line.message.content;
        thoughts += line.message.thinking ?? '';
      }
      expect(expectedText('think').text).toContain(text);
      expect(thoughts).toContain('tide table');
      const called = await ollama.chat({
        model: CHAT,
        messages,
        tools: [{ type: 'function', function: { name: 'get_berth', parameters: SCHEMA } }],
      });
      expect(called.message.tool_calls?.[0]?.function).toMatchObject({
        name: 'get_berth',
        arguments: { name: 'A' },
      });
      const cut = await ollama.chat({ model: CHAT, messages, options: { num_predict: 2 } });
      expect(cut.done_reason).toBe('length');
      const held = await ollama.chat({
        model: CHAT,
        messages,
        format: { type: 'object', properties: { kind: { enum: ['a'] } } },
        logprobs: true,
      });
      expect(JSON.parse(held.message.content)).toEqual({ kind: 'a' });
      expect(held.logprobs?.length).toBeGreaterThan(0);
      const streamed = await ollama.chat({
        model: CHAT,
        messages,
        stream: true,
        tools: [{ type: 'function', function: { name: 'get_berth', parameters: SCHEMA } }],
      });
      const names: string[] = [];
      for await (const { message } of streamed)
        names.push(...(message.tool_calls ?? []).map((call) => call.function.name));
      expect(names).toEqual(['get_berth']);
    });

    it('generates, loads, embeds, and shows what there is', async () => {
      expect((await ollama.generate({ model: CHAT, prompt: HELLO })).response).toBe(SAID);
      expect(await ollama.generate({ model: CHAT, prompt: '' })).toMatchObject({ done_reason: 'load' });
      const several = await ollama.embed({ model: EMBED, input: [HELLO, 'Good night'] });
      expect(several.embeddings).toHaveLength(2);
      const one = await ollama.embeddings({ model: EMBED, prompt: HELLO });
      expect(one.embedding).toEqual(several.embeddings[0]);
      expect((await ollama.list()).models.map(({ name }) => name)).toContain(CHAT);
      expect((await ollama.ps()).models.map(({ name }) => name)).toContain(CHAT);
      expect((await ollama.version()).version).toMatch(/^\d+\.\d+\.\d+$/);
      const shown = await ollama.show({ model: CHAT });
      expect(shown.capabilities).toEqual(expect.arrayContaining(['completion', 'tools']));
      expect(shown.model_info).toHaveProperty(['llama.context_length']);
    });

    it('reads errors as texts', async () => {
      await expect(ollama.chat({ model: 'none', messages })).rejects.toThrow(/There is no model/);
      await expect(ollama.pull({ model: 'x' })).rejects.toThrow(/Berth does not pull/);
      await expect(ollama.chat({ model: 'none', messages })).rejects.toMatchObject({
        name: 'ResponseError',
        status_code: 404,
      });
      const shown = [{ role: 'user', content: 'look', images: ['iVBORw0KGgo='] }];
      await expect(ollama.chat({ model: CHAT, messages: shown })).rejects.toMatchObject({ status_code: 400 });
    });
  });

  describe('cold and warm, streamed and not, in one attempt', () => {
    const messages = [{ role: 'user' as const, content: HELLO }];
    const once = { maxRetries: 0 };
    const berth = () => createOpenAICompatible({ name: 'berth', baseURL: `${stack.url}/v1` });
    const langchain = () =>
      new ChatOpenAI({
        model: CHAT,
        apiKey: 'none',
        configuration: { baseURL: `${stack.url}/v1` },
        maxRetries: 0,
      });
    const joined = async <T>(parts: AsyncIterable<T>, textOf: (part: T) => string | undefined) => {
      let text = '';
      for await (const part of parts) text += textOf(part) ?? '';
      return text;
    };
    const CLIENTS: Readonly<Record<string, readonly [() => Promise<unknown>, () => Promise<unknown>]>> = {
      openai: [
        async () =>
          (await openai.chat.completions.create({ model: CHAT, messages }, once)).choices[0]?.message.content,
        async () =>
          joined(
            await openai.chat.completions.create({ model: CHAT, messages, stream: true }, once),
            ({ choices }) => choices[0]?.delta.content ?? '',
          ),
      ],
      'openai, completions': [
        async () =>
          (await openai.completions.create({ model: CHAT, prompt: HELLO, max_tokens: 8 }, once)).choices[0]
            ?.text !== '',
        async () =>
          (await joined(
            await openai.completions.create(
              { model: CHAT, prompt: HELLO, max_tokens: 8, stream: true },
              once,
            ),
            ({ choices }) => choices[0]?.text,
          )) !== '',
      ],
      'openai, responses': [
        async () => (await openai.responses.create({ model: CHAT, input: HELLO }, once)).output_text,
        async () =>
          joined(await openai.responses.create({ model: CHAT, input: HELLO, stream: true }, once), (event) =>
            event.type === 'response.output_text.delta' ? event.delta : '',
          ),
      ],
      '@anthropic-ai/sdk': [
        async () => {
          const { content } = await anthropic.messages.create(
            { model: CHAT, max_tokens: 200, messages },
            once,
          );
          return content[0]?.type === 'text' ? content[0].text : content;
        },
        () => anthropic.messages.stream({ model: CHAT, max_tokens: 200, messages }, once).finalText(),
      ],
      'ai with @ai-sdk/openai-compatible': [
        async () => (await generateText({ model: berth()(CHAT), prompt: HELLO, maxRetries: 0 })).text,
        async () =>
          joined(
            streamText({ model: berth()(CHAT), prompt: HELLO, maxRetries: 0 }).textStream,
            (text) => text,
          ),
      ],
      '@langchain/openai': [
        async () => (await langchain().invoke(HELLO)).content,
        async () => joined(await langchain().stream(HELLO), ({ text }) => text),
      ],
      ollama: [
        async () => (await ollama.chat({ model: CHAT, messages })).message.content,
        async () =>
          joined(
            await ollama.chat({ model: CHAT, messages, stream: true }),
            ({ message }) => message.content,
          ),
      ],
    };
    const names = Object.keys(CLIENTS);
    /** As a client of Ollama has a model unloaded. */
    const unloaded = async () => {
      await ollama.generate({ model: CHAT, prompt: '', keep_alive: 0 });
      await waitFor('the model is unloaded', 20_000, async () =>
        (await ollama.ps()).models.every(({ name }) => name !== CHAT),
      );
    };

    // Of one load all have their cold call, as when several programs find a model asleep.
    it.each([
      ['whole answers', 0],
      ['streams', 1],
    ] as const)('%s', async (_what, way) => {
      await unloaded();
      const said = (answers: readonly unknown[]) =>
        Object.fromEntries<unknown>(answers.map((text, at) => [names[at] ?? '', text]));
      const expected = Object.fromEntries(
        names.map((name) => [name, name.includes('completions') ? true : SAID]),
      );
      const ask = () => Promise.all(Object.values(CLIENTS).map((client) => client[way]()));
      expect(said(await ask())).toEqual(expected);
      expect(said(await ask())).toEqual(expected);
    });
  });
});

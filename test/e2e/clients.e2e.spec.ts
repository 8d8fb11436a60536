import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { embed, generateText, jsonSchema, streamText, tool } from 'ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectedText } from '../../apps/worker-agent/src/make-model/index.js';
import { removeFolder, startStack, type Stack } from '../support/stack.js';

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
      const final = await stream.finalMessage();
      expect(final.content).toEqual(whole.content);
      expect(final.usage.output_tokens).toBe(whole.usage.output_tokens);
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
    });
  });
});

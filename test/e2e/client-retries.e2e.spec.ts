import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { generateText } from 'ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type BerthError, berthError } from '#domain/errors.js';
import { sendFailure } from '../../apps/api/src/gateway/answers.js';
import { errorShapeOf, routeOf } from '../../apps/api/src/gateway/endpoints.js';
import { ScriptedEngine } from '../../apps/api/src/testing/scripted-engine.js';

const messages = [{ role: 'user' as const, content: 'hi' }];
const MODEL = 'quay/talker';
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, input_tokens: 1, output_tokens: 1 };
/** For the chat's clients and for Anthropic's at once. */
const ANSWER = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  type: 'message',
  created: 1,
  role: 'assistant',
  model: MODEL,
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hello' } }],
  content: [{ type: 'text', text: 'hello' }],
  stop_reason: 'end_turn',
  usage,
});

/** What each client makes of our refusals, as they go over the wire: each by its defaults. */
describe('a refusal that says when to come back', () => {
  let server: ScriptedEngine;
  let url = '';
  /** When each attempt came, by the client's own sign. */
  const attempts = new Map<string, number[]>();
  let refusal: BerthError;
  let refused = 1;

  beforeAll(async () => {
    server = await new ScriptedEngine(({ url: asked, headers, res }) => {
      const who = String(headers['x-client']);
      const times = [...(attempts.get(who) ?? []), performance.now()];
      attempts.set(who, times);
      if (times.length <= refused) {
        sendFailure(res, refusal, errorShapeOf(routeOf(asked)).body(refusal, 'id'));
        return;
      }
      res.setHeader('content-type', 'application/json');
      res.end(ANSWER);
    }).start();
    url = `http://127.0.0.1:${server.port}`;
  });
  beforeEach(() => attempts.clear());
  afterAll(() => server.die());

  const signed = (who: string) => ({ 'x-client': who });
  const openai = () => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', defaultHeaders: signed('openai') });
  const anthropic = () =>
    new Anthropic({ baseURL: url, apiKey: 'none', defaultHeaders: signed('anthropic') });
  const viaOpenai = () => openai().chat.completions.create({ model: MODEL, messages });
  const viaAnthropic = () => anthropic().messages.create({ model: MODEL, max_tokens: 9, messages });
  const viaAi = () =>
    generateText({
      model: createOpenAICompatible({ name: 'berth', baseURL: `${url}/v1`, headers: signed('ai') })(MODEL),
      prompt: 'hi',
    });
  const viaLangchain = () =>
    new ChatOpenAI({
      model: MODEL,
      apiKey: 'none',
      configuration: { baseURL: `${url}/v1`, defaultHeaders: signed('langchain') },
    }).invoke('hi');
  const viaOllama = () =>
    new Ollama({ host: url, headers: signed('ollama') }).chat({ model: MODEL, messages });
  const pauseMs = (who: string) => {
    const [first = 0, second = 0] = attempts.get(who) ?? [];
    return second - first;
  };

  it('is waited out by openai, anthropic and the AI SDK as long as it says, tried again by LangChain, and told by ollama', async () => {
    refusal = berthError('queue_full', 'The queue is full.', { retryAfterSeconds: 1 });
    refused = 1;
    const [one, two, three, four] = await Promise.all([
      viaOpenai(),
      viaAnthropic(),
      viaAi(),
      viaLangchain(),
      expect(viaOllama()).rejects.toMatchObject({
        name: 'ResponseError',
        status_code: 503,
        error: 'The queue is full.',
      }),
    ]);
    expect(one.choices[0]?.message.content).toBe('hello');
    expect(two.content).toMatchObject([{ text: 'hello' }]);
    expect([three.text, four.content]).toEqual(['hello', 'hello']);
    expect([...attempts].map(([who, times]) => [who, times.length]).sort()).toEqual([
      ['ai', 2],
      ['anthropic', 2],
      ['langchain', 2],
      ['ollama', 1],
      ['openai', 2],
    ]);
    // A timer may fire a little early; what openai and anthropic wait by themselves is shorter.
    for (const who of ['openai', 'anthropic', 'ai']) expect(pauseMs(who)).toBeGreaterThan(950);
  });

  it('is not tried again by openai and anthropic where that cannot help, and has their own type of error', async () => {
    refusal = berthError('model_load_failed', 'It did not load.', { retryAfterSeconds: 30 });
    refused = 9;
    const [one, two] = await Promise.all(
      [viaOpenai, viaAnthropic].map((ask) => ask().catch((error: unknown) => error)),
    );
    expect(one).toBeInstanceOf(OpenAI.InternalServerError);
    expect(one).toMatchObject({ status: 503, code: 'model_load_failed' });
    expect(two).toBeInstanceOf(Anthropic.InternalServerError);
    expect(two).toMatchObject({
      status: 503,
      error: { error: { type: 'overloaded_error', message: 'It did not load.' } },
    });
    expect([attempts.get('openai'), attempts.get('anthropic')].map((times) => times?.length)).toEqual([1, 1]);
  });

  it('stops every client at once when the request is at fault', async () => {
    refusal = berthError('context_length_exceeded', 'Too long.');
    refused = 9;
    const asks = [viaOpenai, viaAnthropic, viaAi, viaLangchain, viaOllama];
    const errors = await Promise.all(
      asks.map((ask) =>
        ask().then(
          () => 'an answer',
          (error: unknown) => error,
        ),
      ),
    );
    expect(errors).toEqual([
      expect.any(OpenAI.BadRequestError),
      expect.any(Anthropic.BadRequestError),
      expect.objectContaining({ statusCode: 400, isRetryable: false }),
      expect.objectContaining({ status: 400 }),
      expect.objectContaining({ status_code: 400 }),
    ]);
    for (const times of attempts.values()) expect(times).toHaveLength(1);
  });
});

import { describe, expect, it } from 'vitest';
import { NativeTap } from './native-tap.js';
import type { Json } from './protocols/json.js';
import { MESSAGES } from './protocols/messages/protocol.js';
import { OLLAMA_CHAT } from './protocols/ollama/protocol.js';
import type { Protocol } from './protocols/protocol.js';
import { RESPONSES } from './protocols/responses/protocol.js';
import { StreamTap } from './stream-tap.js';
import { countAnswer } from './usage.js';

const usage = { prompt_tokens: 7, completion_tokens: 3 };
const timings = { prompt_n: 5, cache_n: 2, predicted_n: 3, prompt_ms: 11, predicted_ms: 13 };
const choices = [{ message: { content: 'what "usage": {"prompt_tokens": 99} means, "timings" too' } }];
const counted = (answer: unknown) => countAnswer(Buffer.from(JSON.stringify(answer, null, 1)));

it('reads what an engine counted, wherever in the answer it stands', () => {
  const both = { tokens: { prompt: 7, cached: 2, output: 3 }, timings: { promptMs: 11, decodeMs: 13 } };
  expect(counted({ choices, usage, timings })).toEqual(both);
  expect(counted({ timings, choices, usage, model: 'a' })).toEqual(both);
  expect(counted({ usage, choices })).toEqual({ tokens: { prompt: 7, output: 3 }, timings: {} });
});

it('takes nothing for a count that stands deeper, or in a text', () => {
  const inner = [{ index: 0, usage: { prompt_tokens: 99 }, timings: { prompt_n: 99 } }];
  expect(counted({ choices })).toEqual({ tokens: {}, timings: {} });
  expect(counted({ choices: inner })).toEqual({ tokens: {}, timings: {} });
  expect(counted({ choices: inner, usage })).toEqual({ tokens: { prompt: 7, output: 3 }, timings: {} });
  expect(countAnswer(Buffer.from('{"usage": {"prompt_tokens": 7'))).toEqual({ tokens: {}, timings: {} });
});

describe('what a caller is told was counted', () => {
  const CHAT_USAGE = {
    prompt_tokens: 9,
    completion_tokens: 5,
    prompt_tokens_details: { cached_tokens: 4 },
    completion_tokens_details: { reasoning_tokens: 2 },
  };
  const llama = { prompt_n: 5, cache_n: 4, predicted_n: 5, prompt_ms: 8, predicted_ms: 20 };
  /** In the words of each protocol, told in an engine's last chunk; `made` is what Messages alone count. */
  const told = ({ cached = 4, reasoning = 0, made = 0 }) => ({
    messages: {
      input_tokens: 9 - cached - made,
      cache_creation_input_tokens: made,
      cache_read_input_tokens: cached,
      output_tokens: 5,
    },
    responses: {
      input_tokens: 9,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: 14,
    },
    ollama: { prompt_eval_count: 9, eval_count: 5 },
  });
  const PROTOCOLS = { messages: MESSAGES, responses: RESPONSES, ollama: OLLAMA_CHAT };
  type Name = keyof typeof PROTOCOLS;

  const frame = (event: object) => `data: ${JSON.stringify(event)}\n\n`;
  const opened = (protocol: Protocol, stream: boolean, natively: boolean) => {
    const call = protocol.open({ callId: 'c', now: () => 1000 });
    const asked = { model: 'm', max_tokens: 99, messages: [{ role: 'user', content: 'hi' }], input: 'hi' };
    expect(call.prepare(Buffer.from(JSON.stringify({ ...asked, stream }))).ok).toBe(true);
    call.asks?.(natively);
    return call;
  };
  /** The last usage in what a caller got, in its protocol's own place. */
  const usageTold = (name: Name, text: string): unknown => {
    const said = text.split('\n').filter((line) => line.includes('{'));
    const events = said.map((line) => JSON.parse(line.replace(/^data: /, '')) as Json);
    if (name === 'ollama') return events.at(-1);
    const of = (event: Json): unknown => event['usage'] ?? (event['response'] as Json | undefined)?.['usage'];
    return events.map(of).findLast((usage) => usage !== undefined && usage !== null);
  };
  const streamed = (name: Name, text: string, natively: boolean) => {
    const tap = natively ? new NativeTap() : new StreamTap({ dropUsageChunk: true });
    tap.push(Buffer.from(text));
    const out = opened(PROTOCOLS[name], true, natively).frames(Buffer.from(text));
    return { recorded: tap.counted.tokens, told: usageTold(name, String(out)) };
  };
  const whole = (name: Name, answer: object, natively: boolean) => {
    const bytes = Buffer.from(JSON.stringify(answer));
    const out = opened(PROTOCOLS[name], false, natively).whole(bytes);
    if (!out.ok) throw new Error(out.error.message);
    return { recorded: countAnswer(bytes).tokens, told: usageTold(name, out.value.toString()) };
  };

  const choices = [{ index: 0, delta: { content: 'so' }, message: { content: 'so' }, finish_reason: 'stop' }];
  const without = { prompt_tokens: 9, completion_tokens: 5 };
  it.each([
    ['usage', { usage: CHAT_USAGE }, { cached: 4, reasoning: 2 }, { reasoning: 2 }],
    ['usage and timings', { usage: without, timings: llama }, { cached: 4 }, {}],
    ['timings alone', { timings: llama }, { cached: 4 }, {}],
    [
      'usage where timings say otherwise',
      { usage: CHAT_USAGE, timings: { ...llama, predicted_n: 7 } },
      { reasoning: 2 },
      { reasoning: 2 },
    ],
  ])('is what is recorded, of a chat completion with %s', (_, said, expected, more) => {
    for (const name of ['messages', 'responses', 'ollama'] as const) {
      const recorded = { prompt: 9, cached: 4, output: 5, ...more };
      const all = { recorded, told: expect.objectContaining(told(expected)[name]) as unknown };
      const chunks = frame({ choices, usage: null }) + frame({ choices: [], ...said }) + 'data: [DONE]\n\n';
      expect(streamed(name, chunks, false), name).toEqual(all);
      expect(whole(name, { choices, ...said }, false), name).toEqual(all);
    }
  });

  const start = { input_tokens: 5, cache_read_input_tokens: 4, output_tokens: 1 };
  const written = { ...start, input_tokens: 3, cache_creation_input_tokens: 2 };
  it.each([
    ['only the output', start, { output_tokens: 5 }, {}],
    ['the input, but not the cache', start, { input_tokens: 5, output_tokens: 5 }, {}],
    ['the cache as null', start, { input_tokens: 5, cache_read_input_tokens: null, output_tokens: 5 }, {}],
    ['all of it again', start, { ...start, output_tokens: 5 }, {}],
    ['what it wrote to a cache at its start', written, { input_tokens: 3, output_tokens: 5 }, { made: 2 }],
    [
      'more input than at its start',
      { ...start, input_tokens: 1 },
      { input_tokens: 5, output_tokens: 5 },
      {},
    ],
  ])('is what is recorded, of a message that says at its end %s', (_, first, last, more) => {
    const all = { recorded: { prompt: 9, cached: 4, output: 5 }, told: told(more).messages };
    const events =
      frame({ type: 'message_start', message: { id: 'm', usage: first } }) +
      frame({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: last }) +
      frame({ type: 'message_stop' });
    expect(streamed('messages', events, true)).toEqual(all);
    const content = [{ type: 'text', text: 'so' }];
    const answer = {
      content,
      stop_reason: 'end_turn',
      usage: { ...first, ...last, cache_read_input_tokens: 4 },
    };
    expect(whole('messages', answer, true)).toEqual(all);
  });

  it('is what is recorded, of a response', () => {
    const usage = told({ reasoning: 2 }).responses;
    const all = { recorded: { prompt: 9, cached: 4, output: 5, reasoning: 2 }, told: usage };
    const response = { status: 'completed', output: [], usage };
    const events =
      frame({ type: 'response.created', response: { ...response, usage: null } }) +
      frame({ type: 'response.completed', response });
    expect(streamed('responses', events, true)).toEqual(all);
    expect(whole('responses', response, true)).toEqual(all);
  });
});

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { COUNT_TOKENS, MESSAGES } from './messages/protocol.js';
import type { Protocol } from './protocol.js';
import { RESPONSES } from './responses/protocol.js';

const model = 'chat-a';
const messages = [{ role: 'user' as const, content: 'hi' }];
const parameters = { type: 'object' as const, properties: { of: { type: 'string' } } };

/** What llama-server writes for a call of a tool after some reasoning, with its own fields beside the usual. */
function streamed(): Buffer[] {
  const of = { created: 1, id: 'chatcmpl-1', model, system_fingerprint: 'b1-x' };
  const frame = (more: object) =>
    Buffer.from(`data: ${JSON.stringify({ ...more, ...of, object: 'chat.completion.chunk' })}\n\n`);
  const delta = (said: object, finish: string | null = null) =>
    frame({ choices: [{ finish_reason: finish, index: 0, delta: said }] });
  const called = (more: object, args: string) =>
    delta({ tool_calls: [{ index: 0, ...more, function: { name: 'look', arguments: args } }] });
  const rest = delta({ tool_calls: [{ index: 0, function: { arguments: ':"x"}' } }] });
  const usage = { completion_tokens: 5, prompt_tokens: 10, total_tokens: 15 };
  const timings = { cache_n: 3, prompt_n: 7, prompt_ms: 8, predicted_n: 5, predicted_ms: 20 };
  return [
    delta({ role: 'assistant', content: null }),
    delta({ reasoning_content: 'hm' }),
    called({ id: 'call-1', type: 'function' }, '{"of"'),
    rest,
    delta({}, 'tool_calls'),
    frame({ choices: [], usage: { ...usage, prompt_tokens_details: { cached_tokens: 3 } }, timings }),
    Buffer.from('data: [DONE]\n\n'),
  ];
}

/** A client's fetch: its body goes through the protocol, and so does what llama-server would answer. */
const through =
  (protocol: Protocol): typeof fetch =>
  (_, init) => {
    const call = protocol.open({ callId: '1', now: () => 1000 });
    const prepared = call.prepare(Buffer.from(init?.body as string));
    if (!prepared.ok) throw new Error(prepared.error.message);
    if (!prepared.value.target.streams) {
      const told = call.whole(Buffer.from('{"input_tokens":12,"object":"response.input_tokens"}'));
      if (!told.ok) throw new Error(told.error.message);
      return Promise.resolve(Response.json(JSON.parse(told.value.toString())));
    }
    const told = Buffer.concat(streamed().flatMap((bytes) => call.frames(bytes) ?? []));
    const headers = { 'content-type': 'text/event-stream' };
    return Promise.resolve(new Response(new Uint8Array(told), { headers }));
  };

describe('what llama-server streams, in another protocol', () => {
  it("is heard by the responses helper of openai's client: reasoning, a call of a tool, what was counted", async () => {
    const openai = new OpenAI({ apiKey: 'none', fetch: through(RESPONSES), maxRetries: 0 });
    const tools = [{ type: 'function' as const, name: 'look', parameters, strict: false }];
    const stream = openai.responses.stream({ model, input: messages, tools });
    const { status, output, usage } = await stream.finalResponse();
    expect(status).toBe('completed');
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'function_call']);
    expect(output[1]).toMatchObject({ call_id: 'call-1', name: 'look', arguments: '{"of":"x"}' });
    expect(usage).toMatchObject({ input_tokens: 10, output_tokens: 5 });
  });

  it("is heard by the stream helper of Anthropic's client, and its count of tokens is one there, too", async () => {
    const anthropic = (protocol: Protocol) =>
      new Anthropic({ apiKey: 'none', fetch: through(protocol), maxRetries: 0 });
    const tools = [{ name: 'look', input_schema: parameters }];
    const stream = anthropic(MESSAGES).messages.stream({ model, messages, tools, max_tokens: 99 });
    const { content, stop_reason, usage } = await stream.finalMessage();
    expect(stop_reason).toBe('tool_use');
    expect(content.map(({ type }) => type)).toEqual(['thinking', 'tool_use']);
    expect(content[1]).toMatchObject({ name: 'look', input: { of: 'x' } });
    expect(usage).toMatchObject({ output_tokens: 5 });
    const counted = await anthropic(COUNT_TOKENS).messages.countTokens({ model, messages });
    expect(counted).toMatchObject({ input_tokens: 12 });
  });
});

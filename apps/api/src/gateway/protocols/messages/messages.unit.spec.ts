import { describe, expect, it } from 'vitest';
import { berthError } from '#domain/errors.js';
import type { Json } from '../json.js';
import { MESSAGES } from './protocol.js';

const MODEL = 'quay/talker';
const open = () => MESSAGES.open({ callId: 'c1', now: () => 1000 });
const body = (more: object) => ({
  model: MODEL,
  max_tokens: 50,
  messages: [{ role: 'user', content: 'hi' }],
  ...more,
});

/** The chat body that engines get for it; what is refused throws its words. */
function chatOf(given: object): Json {
  const prepared = open().prepare(Buffer.from(JSON.stringify(given)));
  if (!prepared.ok) throw new Error(`${prepared.error.param}: ${prepared.error.message}`);
  return JSON.parse(prepared.value.bytes.toString()) as Json;
}
const messagesOf = (...messages: object[]) => chatOf(body({ messages }))['messages'];
const tool = { name: 'get_berth', description: 'where', input_schema: { type: 'object' } };
const called = {
  type: 'function',
  function: { name: 'get_berth', description: 'where', parameters: { type: 'object' } },
};

describe('a message on its way to an engine', () => {
  it('keeps what it asks for under the names that engines know', () => {
    const chat = chatOf(
      body({
        system: [
          { type: 'text', text: 'one', cache_control: { type: 'ephemeral' } },
          { type: 'text', text: 'two' },
        ],
        temperature: 0.5,
        top_p: 0.9,
        top_k: 40,
        stop_sequences: ['END'],
        metadata: { user_id: 'u', session: 's', intent: 'background' },
        thinking: { type: 'enabled', budget_tokens: 1024 },
        output_config: { effort: 'max', format: { type: 'json_schema', schema: { type: 'object' } } },
        context_management: { edits: [] },
        service_tier: 'auto',
        stream: true,
      }),
    );
    expect(chat).toEqual({
      model: MODEL,
      messages: [
        { role: 'system', content: 'one\n\ntwo' },
        { role: 'user', content: 'hi' },
      ],
      max_tokens: 50,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      stop: ['END'],
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema: { type: 'object' }, strict: true },
      },
      reasoning_effort: 'high',
      chat_template_kwargs: { enable_thinking: true, reasoning_effort: 'high' },
      user: 'u',
      metadata: { user_id: 'u', session: 's', intent: 'background' },
      stream: true,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    });
  });

  it.each([
    [undefined, { tool_choice: 'auto', parallel_tool_calls: true }],
    [
      { type: 'auto', disable_parallel_tool_use: true },
      { tool_choice: 'auto', parallel_tool_calls: false },
    ],
    [{ type: 'any' }, { tool_choice: 'required', parallel_tool_calls: true }],
    [{ type: 'none' }, { tool_choice: 'none' }],
    [
      { type: 'tool', name: 'get_berth' },
      { tool_choice: { type: 'function', function: { name: 'get_berth' } }, parallel_tool_calls: true },
    ],
  ])('gives its tools on, and chooses as %j says', (choice, expected) => {
    const tools = [
      tool,
      { ...tool, type: 'custom', name: 'other' },
      { type: 'web_search_20250305', name: 'web' },
    ];
    const chat = chatOf(body({ tools, tool_choice: choice }));
    expect(chat).toMatchObject(expected);
    expect(chat['tools']).toEqual([called, { ...called, function: { ...called.function, name: 'other' } }]);
  });

  it('gives calls and results on in the order that templates want, pictures in results as the user’s', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } };
    const result = (id: string, content: unknown, more: object = {}) => ({
      type: 'tool_result',
      tool_use_id: id,
      content,
      ...more,
    });
    expect(
      messagesOf(
        { role: 'user', content: [{ type: 'text', text: 'look' }, image] },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 'x' },
            { type: 'redacted_thinking', data: 'x' },
            { type: 'text', text: 'so' },
            { type: 'tool_use', id: 't1', name: 'get_berth', input: { of: 1 } },
            { type: 'tool_use', id: 't2', name: 'get_berth', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            result('t1', [{ type: 'text', text: 'a' }, image, { type: 'text', text: 'b' }]),
            result('t2', 'none', { is_error: true }),
            { type: 'text', text: 'go on' },
          ],
        },
      ),
    ).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
        ],
      },
      {
        role: 'assistant',
        content: 'so',
        reasoning_content: 'hm',
        tool_calls: [
          { id: 't1', type: 'function', function: { name: 'get_berth', arguments: '{"of":1}' } },
          { id: 't2', type: 'function', function: { name: 'get_berth', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 't1', content: 'a\n\nb' },
      { role: 'tool', tool_call_id: 't2', content: 'Error: none' },
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          { type: 'text', text: 'go on' },
        ],
      },
    ]);
  });

  it('gives documents and search results on as their words', () => {
    const text = {
      type: 'document',
      title: 'Log',
      source: { type: 'text', media_type: 'text/plain', data: 'fog' },
    };
    const parts = {
      type: 'document',
      source: { type: 'content', content: [{ type: 'text', text: 'rain' }] },
    };
    const found = {
      type: 'search_result',
      title: 'T',
      source: 's',
      content: [{ type: 'text', text: 'wind' }],
    };
    const result = { type: 'tool_result', tool_use_id: 't', content: [text, found] };
    const call = { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] };
    const said = messagesOf({ role: 'user', content: [parts, found] }, call, {
      role: 'user',
      content: [result],
    });
    expect(said).toMatchObject([
      { role: 'user', content: 'rain\n\nT\ns\nwind' },
      { role: 'assistant', content: null },
      { role: 'tool', content: 'Log\n\nfog\n\nT\ns\nwind' },
    ]);
  });

  it('makes one turn of turns of one role, and one message of system words at the head', () => {
    const chat = chatOf(
      body({
        system: 'rules',
        messages: [
          { role: 'system', content: 'more rules' },
          { role: 'user', content: 'one' },
          { role: 'user', content: 'two' },
          { role: 'assistant', content: 'a' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't' }] },
          { role: 'system', content: 'remember' },
          { role: 'user', content: 'three' },
        ],
      }),
    );
    expect(chat['messages']).toMatchObject([
      { role: 'system', content: 'rules\n\nmore rules' },
      { role: 'user', content: 'one\n\ntwo' },
      { role: 'assistant', content: 'a', tool_calls: [{ id: 't' }] },
      { role: 'tool', content: '' },
      { role: 'user', content: 'remember\n\nthree' },
    ]);
  });

  it.each([
    [{ messages: [] }, 'messages'],
    [{ messages: [7] }, 'messages.0'],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'messages.0'],
    [{ messages: [{ role: 'user', content: [{ text: 'x' }] }] }, 'messages.0'],
    [{ messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file' } }] }] }, 'messages.0'],
    [
      { messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'base64' } }] }] },
      'messages.0',
    ],
    [{ system: 7 }, 'system'],
    [{ tools: [tool], tool_choice: { type: 'tool', name: 'none' } }, 'tool_choice'],
  ])('is refused by the name of the field when it cannot be carried over: %j', (more, param) => {
    expect(() => chatOf(body(more))).toThrow(`${param}: `);
  });
});

describe('an answer told as a message', () => {
  const chunk = (delta: object, finish: string | null = null, more: object = {}) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;
  const usage = { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } };
  const told = (text: string) => {
    const call = open();
    call.prepare(Buffer.from(JSON.stringify(body({ stream: true }))));
    return (call.frames(Buffer.from(text))?.toString() ?? '')
      .split('\n\n')
      .filter((frame) => frame !== '')
      .map((frame) => {
        const [event, data] = frame.split('\n');
        const read = JSON.parse(data!.slice('data: '.length)) as Json;
        expect(event).toBe(`event: ${String(read['type'])}`);
        return read;
      });
  };

  it('opens, tells and closes one block after the other, in order, with its stop and its usage last', () => {
    const events = told(
      chunk({ role: 'assistant', content: null }) +
        chunk({ reasoning_content: 'hm' }) +
        chunk({ content: 'so' }) +
        chunk({ tool_calls: [{ index: 0, id: 't1', function: { name: 'f', arguments: '{"a"' } }] }) +
        chunk({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }) +
        chunk({ tool_calls: [{ index: 1, id: 't2', function: { name: 'g', arguments: '{}' } }] }) +
        chunk({}, 'tool_calls') +
        `data: ${JSON.stringify({ choices: [], usage })}\n\n` +
        'data: [DONE]\n\n',
    );
    expect(
      events.map(({ type, index }) => (typeof index === 'number' ? `${String(type)} ${index}` : type)),
    ).toEqual([
      'message_start',
      'content_block_start 0',
      'content_block_delta 0',
      'content_block_delta 0',
      'content_block_stop 0',
      'content_block_start 1',
      'content_block_delta 1',
      'content_block_stop 1',
      'content_block_start 2',
      'content_block_delta 2',
      'content_block_delta 2',
      'content_block_stop 2',
      'content_block_start 3',
      'content_block_delta 3',
      'content_block_stop 3',
      'message_delta',
      'message_stop',
    ]);
    const deltas = events.flatMap(({ delta }) => (delta === undefined ? [] : [delta]));
    expect(deltas).toEqual([
      { type: 'thinking_delta', thinking: 'hm' },
      { type: 'signature_delta', signature: '' },
      { type: 'text_delta', text: 'so' },
      { type: 'input_json_delta', partial_json: '{"a"' },
      { type: 'input_json_delta', partial_json: ':1}' },
      { type: 'input_json_delta', partial_json: '{}' },
      { stop_reason: 'tool_use', stop_sequence: null },
    ]);
    expect(events[0]).toMatchObject({
      message: { id: 'msg_c1', role: 'assistant', model: MODEL, content: [] },
    });
    expect(events.at(-2)).toMatchObject({
      usage: { input_tokens: 6, cache_read_input_tokens: 4, output_tokens: 5 },
    });
  });

  it('begins with what the prompt takes where the engine tells it with its first chunk, else with 0, and ends with all', () => {
    const first = { choices: [{ index: 0, delta: { role: 'assistant' } }], usage: { prompt_tokens: 10 } };
    const rest =
      chunk({ content: 'so' }) + `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`;
    const begins = (stream: string) => told(stream)[0]?.['message'];
    expect(begins(`data: ${JSON.stringify(first)}\n\n${rest}`)).toMatchObject({
      usage: { input_tokens: 10, output_tokens: 0 },
    });
    expect(begins(rest)).toMatchObject({ usage: { input_tokens: 0 } });
    expect(told(rest).at(-2)).toMatchObject({ usage: { input_tokens: 6, cache_read_input_tokens: 4 } });
  });

  it.each([
    ['stop', {}, { stop_reason: 'end_turn', stop_sequence: null }],
    ['stop', { stop_reason: 'END' }, { stop_reason: 'stop_sequence', stop_sequence: 'END' }],
    ['length', {}, { stop_reason: 'max_tokens', stop_sequence: null }],
    ['tool_calls', {}, { stop_reason: 'tool_use', stop_sequence: null }],
    ['content_filter', {}, { stop_reason: 'refusal', stop_sequence: null }],
  ])('says why it ended: %s %j', (finish, more, expected) => {
    const choice = { index: 0, finish_reason: finish, ...more };
    const events = told(
      `data: ${JSON.stringify({ choices: [{ ...choice, delta: { content: 'x' } }] })}\n\ndata: [DONE]\n\n`,
    );
    expect(events.at(-2)).toMatchObject({ delta: expected });
    const call = open();
    call.prepare(Buffer.from(JSON.stringify(body({}))));
    const whole = call.whole(
      Buffer.from(JSON.stringify({ choices: [{ ...choice, message: { content: 'x' } }], usage })),
    );
    expect(whole.ok && JSON.parse(whole.value.toString())).toMatchObject({
      type: 'message',
      content: [{ type: 'text', text: 'x' }],
      ...expected,
      usage: { input_tokens: 6, cache_read_input_tokens: 4, output_tokens: 5 },
    });
  });

  it('fails as its protocol says it, by the words that agents know', () => {
    const { errors } = open();
    const details = { promptTokens: 9000, contextTokens: 8192 };
    const long = berthError('context_length_exceeded', 'x', { details });
    expect(errors.body(long, 'c1')).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 9000 tokens > 8192 maximum' },
      request_id: 'c1',
    });
    expect(errors.body(berthError('queue_full', 'x'), 'c1')).toMatchObject({
      error: { type: 'overloaded_error' },
    });
    expect(errors.frame(berthError('engine_failed', 'x'), 'c1')).toMatch(
      /^event: error\ndata: \{"type":"error".*\n\n$/,
    );
  });
});

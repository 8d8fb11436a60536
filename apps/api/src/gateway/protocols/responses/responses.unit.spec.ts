import { describe, expect, it } from 'vitest';
import { berthError } from '#domain/errors.js';
import type { Json } from '../json.js';
import { RESPONSES } from './protocol.js';

const MODEL = 'quay/talker';
const open = () => RESPONSES.open({ callId: 'c1', now: () => 5000 });

function chatOf(given: object): Json {
  const prepared = open().prepare(Buffer.from(JSON.stringify({ model: MODEL, input: 'hi', ...given })));
  if (!prepared.ok) throw new Error(`${prepared.error.param}: ${prepared.error.message}`);
  return JSON.parse(prepared.value.bytes.toString()) as Json;
}
const messagesOf = (...input: object[]) => chatOf({ input })['messages'];
const parameters = { type: 'object' };

describe('a response on its way to an engine', () => {
  it('keeps what it asks for under the names that engines know', () => {
    const chat = chatOf({
      instructions: 'be brief',
      max_output_tokens: 9,
      temperature: 0.5,
      top_p: 0.9,
      parallel_tool_calls: false,
      tools: [
        { type: 'function', name: 'f', description: 'd', parameters, strict: true },
        { type: 'web_search' },
        { type: 'namespace', name: 'n', tools: [] },
      ],
      tool_choice: 'required',
      text: { format: { type: 'json_schema', name: 'k', schema: parameters, strict: true } },
      include: ['message.output_text.logprobs', 'reasoning.encrypted_content'],
      top_logprobs: 2,
      reasoning: { effort: 'low', summary: 'auto' },
      metadata: { session: 's' },
      user: 'u',
      store: false,
      prompt_cache_key: 'p',
      truncation: 'auto',
      stream: true,
    });
    expect(chat).toEqual({
      model: MODEL,
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'hi' },
      ],
      max_tokens: 9,
      temperature: 0.5,
      top_p: 0.9,
      parallel_tool_calls: false,
      tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters, strict: true } }],
      tool_choice: 'required',
      response_format: { type: 'json_schema', json_schema: { name: 'k', schema: parameters, strict: true } },
      logprobs: true,
      top_logprobs: 2,
      reasoning_effort: 'low',
      chat_template_kwargs: { reasoning_effort: 'low' },
      metadata: { session: 's' },
      user: 'u',
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it.each([
    [{ type: 'function', name: 'f' }, { tool_choice: { type: 'function', function: { name: 'f' } } }],
    ['none', { tool_choice: 'none' }],
    [
      { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'g' }] },
      { tool_choice: 'required', tools: [{ function: { name: 'g' } }] },
    ],
  ])('chooses a tool as %j says', (choice, expected) => {
    const tools = ['f', 'g'].map((name) => ({ type: 'function', name, parameters }));
    expect(chatOf({ tools, tool_choice: choice })).toMatchObject(expected);
  });

  it('gives the items of a conversation on as its turns, pictures in outputs as the user’s', () => {
    expect(
      messagesOf(
        { role: 'developer', content: 'rules' },
        {
          type: 'message',
          role: 'user',
          content: [
            { type: 'input_text', text: 'look' },
            { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'low' },
          ],
        },
        { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' },
        { type: 'function_call', call_id: 'c2', name: 'g', arguments: '{}' },
        { type: 'web_search_call', id: 'w' },
        { type: 'function_call_output', call_id: 'c1', output: 'one' },
        {
          type: 'function_call_output',
          call_id: 'c2',
          output: [
            { type: 'input_text', text: 'two' },
            { type: 'input_image', image_url: 'data:image/png;base64,BB==' },
          ],
        },
        {
          type: 'message',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'done', annotations: [] }],
        },
      ),
    ).toEqual([
      { role: 'system', content: 'rules' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'hm',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
          { id: 'c2', type: 'function', function: { name: 'g', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'one' },
      { role: 'tool', tool_call_id: 'c2', content: 'two' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,BB==' } }] },
      { role: 'assistant', content: 'done' },
    ]);
  });

  it.each([
    [{ previous_response_id: 'r' }, 'previous_response_id'],
    [{ conversation: 'c' }, 'conversation'],
    [{ background: true }, 'background'],
    [{ prompt: { id: 'p' } }, 'prompt'],
    [{ input: [] }, 'input'],
    [{ input: [{ type: 'item_reference', id: 'x' }] }, 'input[0]'],
    [{ input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] }, 'input[0]'],
    [{ tool_choice: { type: 'web_search' } }, 'tool_choice'],
    [{ text: { format: { type: 'json_schema' } } }, 'text.format'],
  ])('is refused by the name of the field when it cannot be carried over: %j', (more, param) => {
    expect(() => chatOf(more)).toThrow(`${param}: `);
  });
});

describe('an answer told as a response', () => {
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const USAGE = `data: ${JSON.stringify({
    choices: [],
    usage: {
      prompt_tokens: 10,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 2 },
    },
  })}\n\n`;
  const read = (text: string) =>
    text
      .split('\n\n')
      .filter((frame) => frame !== '')
      .map((frame) => {
        const [event, data] = frame.split('\n');
        const said = JSON.parse(data!.slice('data: '.length)) as Json;
        expect(event).toBe(`event: ${String(said['type'])}`);
        return said;
      });
  const asked = () => {
    const call = open();
    call.prepare(Buffer.from(JSON.stringify({ model: MODEL, input: 'hi', stream: true })));
    return call;
  };

  it('numbers every event, opens, tells and closes one item after the other, and ends with the whole', () => {
    const call = asked();
    const events = read(
      call
        .frames(
          Buffer.from(
            chunk({ role: 'assistant', content: null }) +
              chunk({ reasoning_content: 'hm' }) +
              chunk({ content: 'so' }) +
              chunk({ tool_calls: [{ index: 0, id: 'c1', function: { name: 'f', arguments: '{"a"' } }] }) +
              chunk({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }) +
              chunk({}, 'tool_calls') +
              USAGE +
              'data: [DONE]\n\n',
          ),
        )!
        .toString(),
    );
    expect(events.map(({ sequence_number: n }) => n)).toEqual(events.map((_, at) => at));
    expect(
      events.map(({ type, output_index: at }) =>
        `${String(type).slice('response.'.length)} ${typeof at === 'number' ? at : ''}`.trim(),
      ),
    ).toEqual([
      'created',
      'in_progress',
      'output_item.added 0',
      'content_part.added 0',
      'reasoning_text.delta 0',
      'reasoning_text.done 0',
      'content_part.done 0',
      'output_item.done 0',
      'output_item.added 1',
      'content_part.added 1',
      'output_text.delta 1',
      'output_text.done 1',
      'content_part.done 1',
      'output_item.done 1',
      'output_item.added 2',
      'function_call_arguments.delta 2',
      'function_call_arguments.delta 2',
      'function_call_arguments.done 2',
      'output_item.done 2',
      'completed',
    ]);
    const { response } = events.at(-1) as { response: Json };
    expect(response).toMatchObject({
      id: 'resp_c1',
      object: 'response',
      created_at: 5,
      status: 'completed',
      model: MODEL,
      output: [
        { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'hm' }] },
        { type: 'message', content: [{ type: 'output_text', text: 'so' }] },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}', status: 'completed' },
      ],
      usage: {
        input_tokens: 10,
        input_tokens_details: { cached_tokens: 4 },
        output_tokens: 5,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 15,
      },
    });
    // Each item is the same in all its events.
    const ids = new Set(events.flatMap(({ item_id: id }) => (id === undefined ? [] : [id])));
    expect((response['output'] as Json[]).map(({ id }) => id)).toEqual([...ids]);
  });

  it('is incomplete when it was cut, streamed or not', () => {
    const call = asked();
    const events = read(
      call.frames(Buffer.from(chunk({ content: 'so' }, 'length') + USAGE + 'data: [DONE]\n\n'))!.toString(),
    );
    const cut = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
    expect(events.at(-1)).toMatchObject({ type: 'response.incomplete', response: cut });
    const whole = asked().whole(
      Buffer.from(JSON.stringify({ choices: [{ finish_reason: 'length', message: { content: 'so' } }] })),
    );
    expect(whole.ok && JSON.parse(whole.value.toString())).toMatchObject({
      ...cut,
      output: [{ type: 'message', status: 'incomplete' }],
    });
  });

  it('fails by an event of its own, which goes on with its numbers', () => {
    const call = asked();
    const before = read(call.frames(Buffer.from(chunk({ content: 'so' })))!.toString());
    const failure = read(call.errors.frame(berthError('engine_failed', 'it died'), 'c1'));
    expect(failure).toHaveLength(1);
    expect(failure[0]).toMatchObject({
      type: 'response.failed',
      sequence_number: before.length,
      response: { status: 'failed', error: { code: 'server_error', message: 'it died' } },
    });
    expect(
      read(asked().errors.frame(berthError('engine_failed', 'x'), 'c1')).map(({ type }) => type),
    ).toEqual(['response.created', 'response.in_progress', 'response.failed']);
  });
});

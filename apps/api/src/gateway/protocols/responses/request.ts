import { defined, isObject, type Json, listOf, objectOf, textOf } from '../json.js';
import { Untranslatable } from '../protocol.js';
import { messagesOf } from './input.js';

/** What a body can ask for that needs a memory of earlier responses, with the way to do without. */
const STATEFUL: Readonly<Record<string, string>> = {
  previous_response_id: 'Send the whole conversation in "input" instead.',
  conversation: 'Send the whole conversation in "input" instead.',
  background: 'Keep the connection open, or stream.',
  prompt: 'Send its text in "instructions" and "input" instead.',
};

/** A body of `/v1/responses` as one of `/v1/chat/completions`. */
export function chatOfResponses(body: Json): Json {
  for (const [name, instead] of Object.entries(STATEFUL)) {
    const value = body[name];
    if (value === undefined || value === null || value === false) continue;
    throw new Untranslatable(`"${name}" is not supported: Berth keeps no responses. ${instead}`, name);
  }
  const tools = listOf(body['tools']).flatMap(tool);
  const effort = textOf(objectOf(body['reasoning'])['effort']);
  const wantsLogprobs = listOf(body['include']).includes('message.output_text.logprobs');
  const topLogprobs = body['top_logprobs'] ?? undefined;
  return defined({
    model: body['model'],
    messages: messagesOf(body),
    max_tokens: body['max_output_tokens'] ?? undefined,
    temperature: body['temperature'] ?? undefined,
    top_p: body['top_p'] ?? undefined,
    seed: body['seed'] ?? undefined,
    ...choice(body['tool_choice'], tools),
    parallel_tool_calls: tools.length === 0 ? undefined : (body['parallel_tool_calls'] ?? true),
    response_format: format(objectOf(body['text'])['format']),
    ...(wantsLogprobs || topLogprobs !== undefined ? { logprobs: true, top_logprobs: topLogprobs ?? 0 } : {}),
    reasoning_effort: effort,
    chat_template_kwargs:
      effort === undefined
        ? undefined
        : { reasoning_effort: effort, ...(effort === 'none' ? { enable_thinking: false } : {}) },
    user: body['user'] ?? undefined,
    metadata: body['metadata'] ?? undefined,
    berth: body['berth'],
    stream: body['stream'] ?? undefined,
    stream_options: body['stream'] === true ? { include_usage: true } : undefined,
  });
}

/** Tools of other types run at the maker's: they are left out, as agents expect that send them to everyone. */
function tool(value: unknown): Json[] {
  const { type, name, description, parameters, strict } = objectOf(value);
  if (type !== 'function' || typeof name !== 'string') return [];
  const called = defined({
    name,
    description: description ?? undefined,
    parameters: parameters ?? undefined,
    strict: strict ?? undefined,
  });
  return [{ type: 'function', function: called }];
}

const nameOf = (value: Json): unknown => objectOf(value['function'])['name'];

function choice(value: unknown, tools: readonly Json[]): Json {
  if (!isObject(value)) {
    return tools.length === 0 ? {} : { tools, ...(typeof value === 'string' ? { tool_choice: value } : {}) };
  }
  const { type, name, mode, tools: allowed } = value;
  if (type === 'function') {
    if (!tools.some((each) => nameOf(each) === name)) {
      throw new Untranslatable('"tool_choice" names a function that is not among "tools".', 'tool_choice');
    }
    return { tools, tool_choice: { type: 'function', function: { name } } };
  }
  if (type === 'allowed_tools') {
    const names = new Set(listOf(allowed).map((each) => objectOf(each)['name']));
    const left = tools.filter((each) => names.has(nameOf(each)));
    return left.length === 0 ? {} : { tools: left, tool_choice: mode === 'required' ? 'required' : 'auto' };
  }
  const shown = textOf(type)?.slice(0, 40) ?? 'unnamed';
  throw new Untranslatable(
    `"tool_choice" asks for a tool of type "${shown}"; only functions can be called here.`,
    'tool_choice',
  );
}

function format(value: unknown): Json | undefined {
  if (!isObject(value) || value['type'] === 'text') return undefined;
  if (value['type'] === 'json_object') return { type: 'json_object' };
  if (value['type'] !== 'json_schema' || !isObject(value['schema'])) {
    throw new Untranslatable(
      '"text.format" must be text, json_object, or json_schema with a "schema".',
      'text.format',
    );
  }
  const { name, description, schema, strict } = value;
  return {
    type: 'json_schema',
    json_schema: defined({ name: name ?? 'answer', description, schema, strict: strict ?? undefined }),
  };
}

import { defined, isObject, type Json, listOf, objectOf, textOf } from '../json.js';
import { Untranslatable } from '../protocol.js';
import { berthOptions, format, imageParts, sampling, thinking } from './options.js';

/** Ollama streams unless it is told not to. */
export const streams = (body: Json): boolean => body['stream'] !== false;

const common = (body: Json): Record<string, unknown> =>
  defined({
    model: body['model'],
    ...sampling(body['options']),
    stream: streams(body),
    ...(streams(body) ? { stream_options: { include_usage: true } } : {}),
    berth: berthOptions(body),
    user: body['user'],
    metadata: body['metadata'],
  });

/** A body of `/api/chat` as one of `/v1/chat/completions`. */
export function chatOfChat(body: Json): Json {
  const messages = body['messages'];
  if (!Array.isArray(messages)) throw new Untranslatable('"messages" must be an array.', 'messages');
  const tools = listOf(body['tools']);
  return defined({
    ...common(body),
    messages: withCallIds(messages.map(message)),
    ...(tools.length === 0 ? {} : { tools }),
    response_format: format(body['format']),
    ...(body['logprobs'] === true ? { logprobs: true, top_logprobs: body['top_logprobs'] ?? 0 } : {}),
    ...thinking(body['think']),
  });
}

function message(value: unknown, index: number): Json {
  const where = `messages[${index}]`;
  if (!isObject(value)) throw new Untranslatable(`"${where}" must be an object.`, where);
  const { role, content, thinking: thought, tool_name: toolName } = value;
  if (typeof role !== 'string') throw new Untranslatable(`"${where}.role" must be a text.`, where);
  const images = imageParts(value['images'], `${where}.images`);
  const text = textOf(content) ?? '';
  const calls = listOf(value['tool_calls']).map((call) => {
    const { name, arguments: given } = objectOf(objectOf(call)['function']);
    return {
      id: textOf(objectOf(call)['id']) ?? '',
      type: 'function',
      function: { name, arguments: typeof given === 'string' ? given : JSON.stringify(given ?? {}) },
    };
  });
  return defined({
    role,
    content: images.length === 0 ? text : [{ type: 'text', text }, ...images],
    reasoning_content: textOf(thought) === '' ? undefined : textOf(thought),
    tool_calls: calls.length === 0 ? undefined : calls,
    name: role === 'tool' ? toolName : undefined,
    tool_call_id: role === 'tool' ? (textOf(value['tool_call_id']) ?? '') : undefined,
  });
}

/** Ollama's calls have no ids: results answer calls in their order. */
function withCallIds(messages: readonly Json[]): Json[] {
  let given = 0;
  let waiting: string[] = [];
  return messages.map((each) => {
    if (Array.isArray(each['tool_calls'])) {
      const calls = listOf(each['tool_calls']).map((call) => {
        const own = textOf(objectOf(call)['id']);
        const id = own === undefined || own === '' ? `call_${given++}` : own;
        return { ...objectOf(call), id };
      });
      waiting = calls.map(({ id }) => id);
      return { ...each, tool_calls: calls };
    }
    if (each['role'] !== 'tool' || each['tool_call_id'] !== '') return each;
    return { ...each, tool_call_id: waiting.shift() ?? `call_${given++}` };
  });
}

const UNKNOWN = ['suffix', 'template', 'context'] as const;

/** A body of `/api/generate`: a chat of one turn, or, when `raw`, a plain completion. */
export function bodyOfGenerate(body: Json): Json {
  for (const name of UNKNOWN) {
    const value = body[name];
    if (value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0))
      continue;
    throw new Untranslatable(`"${name}" is not supported here; send the conversation to /api/chat.`, name);
  }
  const prompt = textOf(body['prompt']) ?? '';
  if (body['raw'] === true) return { ...common(body), prompt };
  const images = imageParts(body['images'], 'images');
  const system = textOf(body['system']);
  return defined({
    ...common(body),
    messages: [
      ...(system === undefined || system === '' ? [] : [{ role: 'system', content: system }]),
      { role: 'user', content: images.length === 0 ? prompt : [{ type: 'text', text: prompt }, ...images] },
    ],
    response_format: format(body['format']),
    ...thinking(body['think']),
  });
}

/** Nothing to say: the caller wants the model loaded. */
export const onlyLoads = (body: Json): boolean =>
  Array.isArray(body['messages'])
    ? body['messages'].length === 0
    : (body['prompt'] === undefined || body['prompt'] === null || body['prompt'] === '') &&
      listOf(body['images']).length === 0;

/** `/api/embed` takes one text or several; the older `/api/embeddings` one `prompt`. */
export function bodyOfEmbed(body: Json, field: 'input' | 'prompt'): Json {
  const input = body[field];
  const sound = typeof input === 'string' || (field === 'input' && Array.isArray(input));
  if (!sound)
    throw new Untranslatable(`"${field}" must be a text${field === 'input' ? ' or several' : ''}.`, field);
  return defined({
    model: body['model'],
    input,
    encoding_format: 'float',
    dimensions: body['dimensions'] ?? undefined,
    berth: berthOptions(body),
  });
}

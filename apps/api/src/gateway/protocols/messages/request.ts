import { defined, isObject, type Json, listOf, objectOf, textOf } from '../json.js';
import { Untranslatable } from '../protocol.js';

/**
 * A body of `/v1/messages` as one of `/v1/chat/completions`. Fields and blocks that have no counterpart (cache marks,
 * context management, tools that run at the maker's) are left out, never refused: their list grows with every release.
 */
export function chatOfMessages(body: Json): Json {
  const tools = listOf(body['tools']).flatMap(tool);
  const thinking = objectOf(body['thinking'])['type'];
  const effort = effortOf(objectOf(body['output_config'])['effort']);
  const switches = defined({
    enable_thinking: thinking === 'enabled' ? true : thinking === 'disabled' ? false : undefined,
    reasoning_effort: effort,
  });
  return defined({
    model: body['model'],
    messages: joinedTurns([...system(body['system']), ...conversation(body['messages'])]),
    max_tokens: body['max_tokens'] ?? undefined,
    temperature: body['temperature'] ?? undefined,
    top_p: body['top_p'] ?? undefined,
    top_k: body['top_k'] ?? undefined,
    stop: body['stop_sequences'] ?? undefined,
    ...(tools.length === 0 ? {} : { tools, ...choice(body['tool_choice'], tools) }),
    response_format: format(body),
    reasoning_effort: effort,
    chat_template_kwargs: Object.keys(switches).length === 0 ? undefined : switches,
    user: objectOf(body['metadata'])['user_id'] ?? undefined,
    metadata: body['metadata'] ?? undefined,
    berth: body['berth'],
    stream: body['stream'] ?? undefined,
    // A message begins with what its prompt takes: engines that can tell it before their first word do.
    stream_options:
      body['stream'] === true ? { include_usage: true, continuous_usage_stats: true } : undefined,
  });
}

const textPart = (text: string): Json => ({ type: 'text', text });

/** Templates know low, medium and high; what is above them is as much as they can say. */
function effortOf(value: unknown): string | undefined {
  const effort = textOf(value);
  return effort === 'xhigh' || effort === 'max' ? 'high' : effort;
}

/**
 * Turns of one role that follow one another are one turn, as the protocol has it: many templates refuse two. System words
 * at the head are one message for the same reason.
 */
function joinedTurns(messages: readonly Json[]): Json[] {
  const out: Json[] = [];
  for (const message of messages) {
    const last = out.at(-1);
    if (last && last['role'] === message['role'] && JOINED.has(message['role']))
      out[out.length - 1] = joined(last, message);
    else out.push(message);
  }
  return out;
}

const JOINED: ReadonlySet<unknown> = new Set(['system', 'user', 'assistant']);

function joined(first: Json, second: Json): Json {
  const reasoning = [first, second].flatMap((turn) => textOf(turn['reasoning_content']) ?? []).join('');
  const calls = [first, second].flatMap((turn) => listOf(turn['tool_calls']));
  const parts = [first, second].flatMap(({ content }): readonly Json[] =>
    typeof content === 'string' ? [textPart(content)] : listOf(content).map(objectOf),
  );
  return defined({
    ...first,
    content: parts.length === 0 && calls.length > 0 ? null : contentOf(parts),
    reasoning_content: reasoning === '' ? undefined : reasoning,
    tool_calls: calls.length === 0 ? undefined : calls,
  });
}

/** Parts as a string where they are text alone: templates take that best. */
const contentOf = (parts: readonly Json[]): unknown =>
  parts.every((part) => part['type'] === 'text') ? parts.map((part) => part['text']).join('\n\n') : parts;

function system(value: unknown): Json[] {
  if (value === undefined || value === null || value === '') return [];
  if (typeof value === 'string') return [{ role: 'system', content: value }];
  if (!Array.isArray(value))
    throw new Untranslatable('"system" must be a text or an array of text blocks.', 'system');
  const texts = value.map((block: unknown) => textOf(objectOf(block)['text']) ?? '');
  return texts.length === 0 ? [] : [{ role: 'system', content: texts.join('\n\n') }];
}

function conversation(value: unknown): Json[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw new Untranslatable('"messages" must be an array with at least one message.', 'messages');
  }
  const out: Json[] = [];
  value.forEach((message: unknown, index) => {
    const where = `messages.${index}`;
    if (!isObject(message)) throw new Untranslatable(`"${where}" must be an object.`, where);
    const blocks = blocksOf(message['content'], where);
    switch (message['role']) {
      case 'user':
        out.push(...userTurn(blocks, where));
        return;
      case 'assistant':
        out.push(assistantTurn(blocks));
        return;
      case 'system':
        systemTurn(out, blocks, index === 0);
        return;
      default:
        throw new Untranslatable(`"${where}.role" must be user or assistant.`, where);
    }
  });
  return out;
}

function blocksOf(content: unknown, where: string): readonly Json[] {
  if (typeof content === 'string') return [textPart(content)];
  if (!Array.isArray(content)) {
    throw new Untranslatable(`"${where}.content" must be a text or an array of blocks.`, where);
  }
  return content.map((block: unknown) => {
    if (isObject(block) && typeof block['type'] === 'string') return block;
    throw new Untranslatable(`"${where}.content" has a block without a "type".`, where);
  });
}

/** Results of tools first, as the chat form wants them behind their calls; then what the user says. */
function userTurn(blocks: readonly Json[], where: string): Json[] {
  const out: Json[] = [];
  const parts: Json[] = [];
  for (const block of blocks) {
    if (block['type'] !== 'tool_result') {
      parts.push(...userPart(block, where));
      continue;
    }
    const { content } = block;
    const inside = content === undefined || content === null ? [] : blocksOf(content, where);
    const text = inside.flatMap((part) => resultText(part, where)).join('\n\n');
    out.push({
      role: 'tool',
      tool_call_id: textOf(block['tool_use_id']) ?? '',
      content: block['is_error'] === true ? `Error: ${text}` : text,
    });
    // Templates know no pictures in a tool's result: they follow as the user's.
    for (const part of inside) if (part['type'] === 'image') parts.push(...userPart(part, where));
  }
  if (parts.length > 0) out.push({ role: 'user', content: contentOf(parts) });
  return out;
}

/** What a block of a tool's result says in words. */
function resultText(part: Json, where: string): string[] {
  switch (part['type']) {
    case 'text':
      return [textOf(part['text']) ?? ''];
    case 'document':
      return [documentText(part, where)];
    case 'search_result': {
      const words = listOf(part['content']).map((each) => textOf(objectOf(each)['text']) ?? '');
      return [
        [part['title'], part['source']]
          .flatMap((each) => textOf(each) ?? [])
          .concat(words)
          .join('\n'),
      ];
    }
    default:
      return [];
  }
}

function userPart(block: Json, where: string): Json[] {
  switch (block['type']) {
    case 'text':
      return [textPart(textOf(block['text']) ?? '')];
    case 'image':
      return [{ type: 'image_url', image_url: { url: imageUrl(objectOf(block['source']), where) } }];
    case 'document':
    case 'search_result':
      return resultText(block, where).map(textPart);
    default:
      return [];
  }
}

function imageUrl(source: Json, where: string): string {
  const { type, media_type: mediaType, data, url } = source;
  if (type === 'base64' && typeof data === 'string' && typeof mediaType === 'string') {
    return `data:${mediaType};base64,${data}`;
  }
  if (type === 'url' && typeof url === 'string') return url;
  throw new Untranslatable(
    `"${where}" has an image whose source is neither base64 data with its media_type nor a url. Files are not kept here.`,
    where,
  );
}

function documentText(block: Json, where: string): string {
  const source = objectOf(block['source']);
  const title = textOf(block['title']);
  const head = title === undefined ? '' : `${title}\n\n`;
  if (source['type'] === 'text' && typeof source['data'] === 'string') return head + source['data'];
  if (source['type'] === 'content') {
    const { content } = source;
    const parts = typeof content === 'string' ? [textPart(content)] : listOf(content).map(objectOf);
    return head + parts.map((part) => textOf(part['text']) ?? '').join('\n\n');
  }
  throw new Untranslatable(`"${where}" has a document that is no plain text. Send its text.`, where);
}

function assistantTurn(blocks: readonly Json[]): Json {
  const texts: string[] = [];
  const reasoning: string[] = [];
  const calls: Json[] = [];
  for (const block of blocks) {
    if (block['type'] === 'text') texts.push(textOf(block['text']) ?? '');
    else if (block['type'] === 'thinking') reasoning.push(textOf(block['thinking']) ?? '');
    else if (block['type'] === 'tool_use') {
      calls.push({
        id: textOf(block['id']) ?? '',
        type: 'function',
        function: { name: textOf(block['name']) ?? '', arguments: JSON.stringify(block['input'] ?? {}) },
      });
    }
  }
  return defined({
    role: 'assistant',
    content: texts.length === 0 && calls.length > 0 ? null : texts.join(''),
    reasoning_content: reasoning.length === 0 ? undefined : reasoning.join(''),
    tool_calls: calls.length === 0 ? undefined : calls,
  });
}

/**
 * Some agents put system words among the messages. Most templates refuse them anywhere but at the head: at the head they
 * join it, elsewhere they are said with the user's.
 */
function systemTurn(out: Json[], blocks: readonly Json[], atHead: boolean): void {
  const text = contentOf(blocks.filter((block) => block['type'] === 'text'));
  out.push({ role: atHead ? 'system' : 'user', content: text });
}

function tool(value: unknown): Json[] {
  const given = objectOf(value);
  const { name, type, input_schema: schema, description } = given;
  // Tools of other types run at the maker's, or come without a schema: no engine here can call them.
  if (typeof name !== 'string' || !isObject(schema)) return [];
  if (type !== undefined && type !== null && type !== 'custom') return [];
  return [{ type: 'function', function: defined({ name, description, parameters: schema }) }];
}

/** Several calls at once are the protocol's rule and not the engines'. */
function choice(value: unknown, tools: readonly Json[]): Json {
  const { type, name, disable_parallel_tool_use: one } = objectOf(value);
  const parallel = { parallel_tool_calls: one !== true };
  switch (type) {
    case 'any':
      return { tool_choice: 'required', ...parallel };
    case 'tool':
      if (!tools.some((tool) => objectOf(tool['function'])['name'] === name)) {
        throw new Untranslatable('"tool_choice" names a tool that is not among "tools".', 'tool_choice');
      }
      return { tool_choice: { type: 'function', function: { name } }, ...parallel };
    case 'none':
      return { tool_choice: 'none' };
    default:
      return { tool_choice: 'auto', ...parallel };
  }
}

/** The newer place of a schema, and the older one. */
function format(body: Json): Json | undefined {
  const given = objectOf(objectOf(body['output_config'])['format'] ?? body['output_format']);
  if (given['type'] !== 'json_schema') return undefined;
  return { type: 'json_schema', json_schema: { name: 'answer', schema: given['schema'], strict: true } };
}

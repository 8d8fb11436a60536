import { defined, isObject, type Json, listOf, objectOf, textOf } from '../json.js';
import { Untranslatable } from '../protocol.js';

const ROLES = new Set(['user', 'assistant', 'system', 'developer']);

/** `instructions` and the items of `input` as the messages of a chat. */
export function messagesOf(body: Json): Json[] {
  const out: Json[] = [];
  const instructions = body['instructions'];
  if (typeof instructions === 'string' && instructions !== '')
    out.push({ role: 'system', content: instructions });
  const { input } = body;
  if (typeof input === 'string') {
    out.push({ role: 'user', content: input });
  } else if (Array.isArray(input) && input.length > 0) {
    const items = new Items(out);
    input.forEach((value: unknown, index) => items.add(value, `input[${index}]`));
  } else {
    throw new Untranslatable('"input" must be a text or an array with at least one item.', 'input');
  }
  return joinedSystem(out);
}

/** Most templates take one system message, at the head. */
function joinedSystem(messages: readonly Json[]): Json[] {
  const isSystem = (message: Json) => message['role'] === 'system' || message['role'] === 'developer';
  let count = 0;
  while (count < messages.length && isSystem(messages[count] ?? {})) count += 1;
  if (count < 2) return [...messages];
  const texts = messages.slice(0, count).map(({ content }) => content);
  if (!texts.every((text) => typeof text === 'string')) return [...messages];
  return [{ role: 'system', content: texts.join('\n\n') }, ...messages.slice(count)];
}

class Items {
  readonly #out: Json[];

  constructor(out: Json[]) {
    this.#out = out;
  }

  add(value: unknown, where: string): void {
    if (!isObject(value)) throw new Untranslatable(`"${where}" must be an object.`, where);
    switch (value['type'] ?? 'message') {
      case 'message':
        this.#message(value, where);
        return;
      case 'function_call':
        this.#call(textOf(value['call_id']) ?? '', value['name'], textOf(value['arguments']) ?? '{}');
        return;
      case 'custom_tool_call':
        this.#call(textOf(value['call_id']) ?? '', value['name'], JSON.stringify({ input: value['input'] }));
        return;
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.#output(value, where);
        return;
      case 'reasoning':
        this.#reasoning(value);
        return;
      case 'item_reference':
        throw new Untranslatable(
          `"${where}" refers to an item of an earlier response, and Berth keeps none. Send the item itself.`,
          where,
        );
      default:
        // Calls of tools that ran at the maker's: nothing here knows them.
        return;
    }
  }

  #message(item: Json, where: string): void {
    const role = textOf(item['role']);
    if (role === undefined || !ROLES.has(role)) {
      throw new Untranslatable(`"${where}.role" must be user, assistant, system or developer.`, where);
    }
    const content = contentOf(item['content'], where);
    const last = this.#out.at(-1);
    // Reasoning of the same turn, which came before it.
    if (role === 'assistant' && last?.['role'] === 'assistant' && last['content'] === null) {
      this.#out[this.#out.length - 1] = { ...last, content };
      return;
    }
    this.#out.push({ role: role === 'developer' ? 'system' : role, content });
  }

  #call(id: string, name: unknown, given: string): void {
    const call = { id, type: 'function', function: { name: textOf(name) ?? '', arguments: given } };
    const last = this.#assistant();
    this.#out[this.#out.length - 1] = { ...last, tool_calls: [...listOf(last['tool_calls']), call] };
  }

  #output(item: Json, where: string): void {
    const { output } = item;
    const content = typeof output === 'string' ? output : contentOf(output, where);
    const texts =
      typeof content === 'string'
        ? content
        : content
            .filter((part) => part['type'] === 'text')
            .map((part) => part['text'])
            .join('\n');
    this.#out.push({ role: 'tool', tool_call_id: textOf(item['call_id']) ?? '', content: texts });
    const pictures =
      typeof content === 'string' ? [] : content.filter((part) => part['type'] === 'image_url');
    // Templates know no pictures in a tool's result: they follow as the user's.
    if (pictures.length > 0) this.#out.push({ role: 'user', content: pictures });
  }

  #reasoning(item: Json): void {
    const parts = [...listOf(item['content']), ...listOf(item['summary'])];
    const text = parts.map((part) => textOf(objectOf(part)['text']) ?? '').join('');
    if (text === '') return;
    this.#out.push({ role: 'assistant', content: null, reasoning_content: text });
  }

  /** The assistant's turn that is being told, a new one where there is none. */
  #assistant(): Json {
    const last = this.#out.at(-1);
    if (last?.['role'] === 'assistant') return last;
    const opened = { role: 'assistant', content: null };
    this.#out.push(opened);
    return opened;
  }
}

function contentOf(content: unknown, where: string): string | Json[] {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) {
    throw new Untranslatable(`"${where}.content" must be a text or an array of parts.`, where);
  }
  const parts = content.map((part: unknown) => partOf(objectOf(part), where));
  if (!parts.every((part) => part['type'] === 'text')) return parts;
  return parts.map((part) => String(part['text'])).join('\n');
}

function partOf(part: Json, where: string): Json {
  const { type } = part;
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
    case 'reasoning_text':
      return { type: 'text', text: textOf(part['text']) ?? '' };
    case 'refusal':
      return { type: 'text', text: textOf(part['refusal']) ?? '' };
    case 'input_image': {
      const { image_url: url, detail } = part;
      if (typeof url === 'string') {
        return { type: 'image_url', image_url: defined({ url, detail: detail ?? undefined }) };
      }
      throw new Untranslatable(
        `"${where}" has an image without "image_url"; files are not kept here.`,
        where,
      );
    }
    case 'input_audio':
      return { type: 'input_audio', input_audio: part['input_audio'] };
    default: {
      const shown = textOf(type)?.slice(0, 40) ?? 'unnamed';
      throw new Untranslatable(
        `"${where}" has a part of type "${shown}"; text, images and audio can be sent.`,
        where,
      );
    }
  }
}

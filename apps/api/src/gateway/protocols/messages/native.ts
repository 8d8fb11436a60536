import { partText, ThinkText } from '../../reasoning/think-text.js';
import {
  type AnswerStream,
  type Call,
  type ChatAnswer,
  type ChatPiece,
  NOTHING_SAID,
  partPiece,
} from '../chat-answer.js';
import { type Counted, countedIn, Tally } from '../../usage.js';
import { isObject, type Json, listOf, numberOf, objectOf, textOf } from '../json.js';

/** Blocks that engines with a Messages route of their own are not known to read. */
const NOT_READ: ReadonlySet<unknown> = new Set(['document', 'search_result']);

/**
 * The body for an engine that has the route itself: as it came, but that one tool which is named is sent alone, since
 * llama-server reads no more of a choice than whether a tool must be called.
 * @returns undefined where the body asks for what such a route is not known to do: then it is translated.
 */
export function nativeMessages(bytes: Buffer, body: Json): Buffer | undefined {
  if (isObject(objectOf(body['output_config'])['format']) || isObject(body['output_format']))
    return undefined;
  const blocks = listOf(body['messages']).flatMap((message) => listOf(objectOf(message)['content']));
  const inside = blocks.flatMap((block) => [block, ...listOf(objectOf(block)['content'])]);
  if (inside.some((block) => NOT_READ.has(objectOf(block)['type']))) return undefined;
  const { type, name } = objectOf(body['tool_choice']);
  if (type !== 'tool') return bytes;
  const tools = listOf(body['tools']).filter((tool) => objectOf(tool)['name'] === name);
  return Buffer.from(
    JSON.stringify({ ...body, tools, tool_choice: { ...objectOf(body['tool_choice']), type: 'any' } }),
  );
}

const FINISHES: Readonly<Record<string, string>> = {
  max_tokens: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
};

/** llama-server says `end_turn` also where a stop string ended it, and names the string. */
const finishOf = (reason: unknown): string | undefined =>
  typeof reason === 'string' ? (FINISHES[reason] ?? 'stop') : undefined;

/** An engine's own whole message, read as every answer is. */
export function readNativeMessage(answer: Json): ChatAnswer | undefined {
  if (!Array.isArray(answer['content'])) return undefined;
  let own = '';
  let text = '';
  const calls: Call[] = [];
  for (const value of listOf(answer['content'])) {
    const block = objectOf(value);
    if (block['type'] === 'thinking') own += textOf(block['thinking']) ?? '';
    else if (block['type'] === 'text') text += textOf(block['text']) ?? '';
    else if (block['type'] === 'tool_use') {
      const id = textOf(block['id']) ?? `call_${calls.length}`;
      calls.push({ id, name: textOf(block['name']) ?? '', arguments: JSON.stringify(block['input'] ?? {}) });
    }
  }
  const stopString = textOf(answer['stop_sequence']);
  return {
    ...(own === '' ? partText(text) : { reasoning: own, text }),
    calls,
    finish: finishOf(answer['stop_reason']) ?? 'stop',
    ...(stopString === undefined ? {} : { stopString }),
    counted: countedIn(answer),
  };
}

/** An engine's own events of a message, read as every stream is. */
export class NativeMessageStream implements AnswerStream {
  readonly #think = new ThinkText();
  /** The calls, by the index of their blocks. */
  readonly #calls = new Map<number, number>();
  finish: string | undefined;
  stopString: string | undefined;
  readonly #tally = new Tally();

  get counted(): Counted {
    return this.#tally.counted;
  }

  push(event: Json): ChatPiece {
    this.#tally.hear(event);
    const index = numberOf(event['index']) ?? 0;
    switch (event['type']) {
      case 'content_block_start':
        return this.#opened(index, objectOf(event['content_block']));
      case 'content_block_delta':
        return this.#delta(index, objectOf(event['delta']));
      case 'message_delta': {
        const delta = objectOf(event['delta']);
        this.finish = finishOf(delta['stop_reason']) ?? this.finish;
        this.stopString = textOf(delta['stop_sequence']) ?? this.stopString;
        return partPiece(this.#think, '', '', true);
      }
      default:
        return NOTHING_SAID;
    }
  }

  #opened(index: number, block: Json): ChatPiece {
    if (block['type'] !== 'tool_use') {
      const own = textOf(block['thinking']) ?? '';
      return partPiece(this.#think, own, textOf(block['text']) ?? '', false);
    }
    const call = this.#calls.size;
    this.#calls.set(index, call);
    const id = textOf(block['id']);
    const opened = { index: call, name: textOf(block['name']) ?? '', arguments: '' };
    return {
      ...partPiece(this.#think, '', '', true),
      calls: [id === undefined ? opened : { ...opened, id }],
    };
  }

  #delta(index: number, delta: Json): ChatPiece {
    switch (delta['type']) {
      case 'text_delta':
        return partPiece(this.#think, '', textOf(delta['text']) ?? '', false);
      case 'thinking_delta':
        return partPiece(this.#think, textOf(delta['thinking']) ?? '', '', false);
      case 'input_json_delta': {
        const call = this.#calls.get(index) ?? 0;
        return { ...NOTHING_SAID, calls: [{ index: call, arguments: textOf(delta['partial_json']) ?? '' }] };
      }
      default:
        return NOTHING_SAID;
    }
  }
}

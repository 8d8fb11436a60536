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
import { isObject, type Json, listOf, objectOf, textOf } from '../json.js';

/**
 * The body for an engine that has the route itself: as it came.
 * @returns undefined where it asks for what such a route is not known to do (formats, log probabilities, the choice of one
 * tool): then it is translated.
 */
export function nativeResponses(bytes: Buffer, body: Json): Buffer | undefined {
  const format = objectOf(objectOf(body['text'])['format'])['type'] ?? 'text';
  const wanted = [...listOf(body['include'])].some((each) => each !== 'reasoning.encrypted_content');
  if (format !== 'text' || wanted || isObject(body['tool_choice'])) return undefined;
  if ((body['top_logprobs'] ?? null) !== null) return undefined;
  return bytes;
}

const textsOf = (parts: unknown): string =>
  listOf(parts)
    .map((part) => textOf(objectOf(part)['text']) ?? '')
    .join('');

/** llama-server says `completed` also of what was cut: as many tokens as were allowed tell it. */
function finishOf(response: Json, { tokens }: Counted, most: number | undefined): string {
  const cut = response['status'] === 'incomplete' || (most !== undefined && (tokens.output ?? 0) >= most);
  return cut ? 'length' : 'stop';
}

/** An engine's own whole response, read as every answer is. `most`: the tokens that it was allowed. */
export function readNativeResponse(answer: Json, most: number | undefined): ChatAnswer | undefined {
  if (!Array.isArray(answer['output'])) return undefined;
  let own = '';
  let text = '';
  const calls: Call[] = [];
  for (const value of listOf(answer['output'])) {
    const item = objectOf(value);
    if (item['type'] === 'reasoning') own += textsOf(item['content']) || textsOf(item['summary']);
    else if (item['type'] === 'message') text += textsOf(item['content']);
    else if (item['type'] === 'function_call') {
      const id = textOf(item['call_id']) ?? `call_${calls.length}`;
      calls.push({ id, name: textOf(item['name']) ?? '', arguments: textOf(item['arguments']) ?? '{}' });
    }
  }
  const counted = countedIn(answer);
  return {
    ...(own === '' ? partText(text) : { reasoning: own, text }),
    calls,
    finish: finishOf(answer, counted, most),
    counted,
  };
}

interface OpenCall {
  readonly index: number;
  told: boolean;
}

/** An engine's own events of a response, read as every stream is: neither their numbers nor their indices are needed. */
export class NativeResponseStream implements AnswerStream {
  readonly #think = new ThinkText();
  readonly #calls = new Map<string, OpenCall>();
  readonly #most: number | undefined;
  #last: OpenCall | undefined;
  finish: string | undefined;
  readonly stopString = undefined;
  readonly #tally = new Tally();

  constructor(most: number | undefined) {
    this.#most = most;
  }

  get counted(): Counted {
    return this.#tally.counted;
  }

  push(event: Json): ChatPiece {
    this.#tally.hear(event);
    const delta = textOf(event['delta']) ?? '';
    switch (event['type']) {
      case 'response.output_item.added':
        return this.#opened(objectOf(event['item']));
      case 'response.output_item.done':
        return this.#closed(objectOf(event['item']));
      case 'response.output_text.delta':
        return partPiece(this.#think, '', delta, false);
      case 'response.reasoning_text.delta':
      case 'response.reasoning_summary_text.delta':
        return partPiece(this.#think, delta, '', false);
      case 'response.function_call_arguments.delta':
        return this.#arguments(this.#calls.get(textOf(event['item_id']) ?? '') ?? this.#last, delta);
      case 'response.completed':
      case 'response.incomplete': {
        const response = objectOf(event['response']);
        this.finish = finishOf(response, this.counted, this.#most);
        return partPiece(this.#think, '', '', true);
      }
      default:
        return NOTHING_SAID;
    }
  }

  #opened(item: Json): ChatPiece {
    if (item['type'] !== 'function_call') return NOTHING_SAID;
    const open = { index: this.#calls.size, told: false };
    const id = textOf(item['call_id']);
    this.#calls.set(textOf(item['id']) ?? id ?? `call ${open.index}`, open);
    this.#last = open;
    const call = { index: open.index, name: textOf(item['name']) ?? '', arguments: '' };
    return {
      ...partPiece(this.#think, '', '', true),
      calls: [id === undefined ? call : { ...call, id }],
    };
  }

  #arguments(open: OpenCall | undefined, delta: string): ChatPiece {
    if (!open || delta === '') return NOTHING_SAID;
    open.told = true;
    return { ...NOTHING_SAID, calls: [{ index: open.index, arguments: delta }] };
  }

  /** Arguments that came in no pieces come with the end of their item. */
  #closed(item: Json): ChatPiece {
    if (item['type'] !== 'function_call') return NOTHING_SAID;
    const known = this.#calls.get(textOf(item['id']) ?? textOf(item['call_id']) ?? '') ?? this.#last;
    if (known?.told === true) return NOTHING_SAID;
    return this.#arguments(known, textOf(item['arguments']) ?? '');
  }
}

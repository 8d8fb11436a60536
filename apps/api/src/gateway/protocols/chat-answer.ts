import { partText, ThinkText } from '../reasoning/think-text.js';
import { type Counted, countedIn, Tally } from '../usage.js';
import { isObject, type Json, listOf, numberOf, objectOf, textOf } from './json.js';

/** What a chat completion says, read once for every protocol that it is told in. */

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface ChatAnswer {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly Call[];
  readonly finish: string;
  /** The stop string that ended it, where the engine says so. */
  readonly stopString?: string;
  readonly logprobs?: readonly unknown[];
  readonly counted: Counted;
}

/** A part of a call: its id and name come once, its arguments in pieces. */
export interface CallPiece {
  readonly index: number;
  readonly id?: string;
  readonly name?: string;
  readonly arguments: string;
}

export interface ChatPiece {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly CallPiece[];
  readonly logprobs: readonly unknown[];
}

/** An answer that comes in pieces, whatever protocol its engine tells it in. */
export interface AnswerStream {
  push(event: Json): ChatPiece;
  readonly finish: string | undefined;
  readonly stopString: string | undefined;
  readonly counted: Counted;
}

const ENDS: ReadonlySet<unknown> = new Set(['message_stop', 'response.completed', 'response.incomplete']);

/** Whether an engine's own event of a message or a response is its last. */
export const isLast = (event: Json): boolean => ENDS.has(event['type']);

export const NOTHING_SAID: ChatPiece = { reasoning: '', text: '', calls: [], logprobs: [] };

/** What engines parted themselves, under either of its names. */
const ownReasoning = (message: Json): string =>
  textOf(message['reasoning_content']) ?? textOf(message['reasoning']) ?? '';

const logprobsOf = (choice: Json): readonly unknown[] => listOf(objectOf(choice['logprobs'])['content']);

/** @returns undefined when the engine's answer is no chat completion. */
export function readChatAnswer(answer: Json): ChatAnswer | undefined {
  const [choice] = listOf(answer['choices']);
  if (!isObject(choice) || !isObject(choice['message'])) return undefined;
  const { message } = choice;
  const own = ownReasoning(message);
  const content = textOf(message['content']) ?? '';
  const parted = own === '' ? partText(content) : { reasoning: own, text: content };
  const stopString = textOf(choice['stop_reason']);
  const logprobs = logprobsOf(choice);
  return {
    ...parted,
    calls: listOf(message['tool_calls']).map((call, index) => {
      const called = objectOf(objectOf(call)['function']);
      return {
        id: textOf(objectOf(call)['id']) ?? `call_${index}`,
        name: textOf(called['name']) ?? '',
        arguments: textOf(called['arguments']) ?? '{}',
      };
    }),
    finish: textOf(choice['finish_reason']) ?? 'stop',
    ...(stopString === undefined ? {} : { stopString }),
    ...(logprobs.length === 0 ? {} : { logprobs }),
    counted: countedIn(answer),
  };
}

/** Reads a stream's chunks; what ends the answer is kept until the stream has ended, since usage comes last. */
export class ChatStream implements AnswerStream {
  readonly #think = new ThinkText();
  finish: string | undefined;
  stopString: string | undefined;
  readonly #tally = new Tally();

  get counted(): Counted {
    return this.#tally.counted;
  }

  push(chunk: Json): ChatPiece {
    this.#tally.hear(chunk);
    const [choice] = listOf(chunk['choices']);
    if (!isObject(choice)) return NOTHING_SAID;
    const delta = objectOf(choice['delta']);
    const calls = listOf(delta['tool_calls']).map(callPiece);
    const finish = textOf(choice['finish_reason']);
    if (finish !== undefined) this.finish = finish;
    this.stopString ??= textOf(choice['stop_reason']);
    const own = ownReasoning(delta);
    const content = textOf(delta['content']) ?? '';
    const ends = finish !== undefined || calls.length > 0;
    return { ...partPiece(this.#think, own, content, ends), calls, logprobs: logprobsOf(choice) };
  }
}

/** Parts a piece of text, unless the engine parts reasoning itself. `ends`: no more text of this message comes. */
export function partPiece(think: ThinkText, own: string, content: string, ends: boolean): ChatPiece {
  const first = content === '' ? { reasoning: '', text: '' } : think.push(content);
  const last = own !== '' || ends ? think.settle() : { reasoning: '', text: '' };
  return { ...NOTHING_SAID, reasoning: own + first.reasoning + last.reasoning, text: first.text + last.text };
}

function callPiece(value: unknown, at: number): CallPiece {
  const call = objectOf(value);
  const called = objectOf(call['function']);
  const id = textOf(call['id']);
  const name = textOf(called['name']);
  return {
    index: numberOf(call['index']) ?? at,
    ...(id === undefined ? {} : { id }),
    ...(name === undefined ? {} : { name }),
    arguments: textOf(called['arguments']) ?? '',
  };
}

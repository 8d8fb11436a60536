import type { AnswerStream, CallPiece } from '../chat-answer.js';
import type { Json } from '../json.js';
import { type MessageHead, stopOf, usageOf } from './answer.js';

const event = (type: string, fields: Json): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

type Block = { readonly kind: 'thinking' | 'text' } | { readonly kind: 'tool'; readonly call: number };

/** An engine's stream as the events of a message: one block open at a time, their indices rising. */
export class MessageEvents {
  readonly #head: MessageHead;
  readonly #chat: AnswerStream;
  #started = false;
  #index = -1;
  #open: Block | undefined;

  constructor(head: MessageHead, chat: AnswerStream) {
    this.#head = head;
    this.#chat = chat;
  }

  chunk(chunk: Json): string {
    const { reasoning, text, calls } = this.#chat.push(chunk);
    let out = this.#start();
    if (reasoning !== '') {
      out += this.#to({ kind: 'thinking' }, { type: 'thinking', thinking: '', signature: '' });
      out += this.#delta({ type: 'thinking_delta', thinking: reasoning });
    }
    if (text !== '') {
      out += this.#to({ kind: 'text' }, { type: 'text', text: '' });
      out += this.#delta({ type: 'text_delta', text });
    }
    for (const call of calls) out += this.#call(call);
    return out;
  }

  /** Usage comes last of all, so the end is told when the stream has ended. */
  done(): string {
    const { finish, stopString, counted } = this.#chat;
    return (
      this.#start() +
      this.#close() +
      event('message_delta', { delta: stopOf(finish, stopString), usage: usageOf(counted) }) +
      event('message_stop', {})
    );
  }

  #start(): string {
    if (this.#started) return '';
    this.#started = true;
    const message = {
      id: this.#head.id,
      type: 'message',
      role: 'assistant',
      model: this.#head.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: usageOf(this.#chat.counted),
    };
    return event('message_start', { message });
  }

  #call({ index, id, name, arguments: piece }: CallPiece): string {
    const opened = this.#to(
      { kind: 'tool', call: index },
      { type: 'tool_use', id: id ?? `toolu_${this.#head.id.slice(4)}_${index}`, name: name ?? '', input: {} },
    );
    return piece === '' ? opened : opened + this.#delta({ type: 'input_json_delta', partial_json: piece });
  }

  #to(block: Block, content: Json): string {
    const open = this.#open;
    const same =
      open?.kind === block.kind &&
      (open.kind !== 'tool' || block.kind !== 'tool' || open.call === block.call);
    if (same) return '';
    const closed = this.#close();
    this.#open = block;
    this.#index += 1;
    return closed + event('content_block_start', { index: this.#index, content_block: content });
  }

  #delta(delta: Json): string {
    return event('content_block_delta', { index: this.#index, delta });
  }

  #close(): string {
    const open = this.#open;
    if (!open) return '';
    this.#open = undefined;
    const signature = open.kind === 'thinking' ? this.#delta({ type: 'signature_delta', signature: '' }) : '';
    return signature + event('content_block_stop', { index: this.#index });
  }
}

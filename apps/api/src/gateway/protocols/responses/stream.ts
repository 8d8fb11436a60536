import type { BerthError } from '#domain/errors.js';
import type { AnswerStream, CallPiece } from '../chat-answer.js';
import type { Json } from '../json.js';
import {
  callItem,
  endOf,
  type ItemStatus,
  itemId,
  messageItem,
  reasoningItem,
  type ResponseHead,
  responseOf,
  textPart,
  usageOf,
} from './answer.js';

type Open = { readonly id: string; readonly outputIndex: number } & (
  | { readonly kind: 'reasoning' | 'message'; text: string; readonly logprobs: unknown[] }
  | {
      readonly kind: 'call';
      readonly call: number;
      readonly callId: string;
      readonly name: string;
      text: string;
    }
);

/**
 * An engine's stream as the events of a response: every event numbered, every item opened, told and closed before the next
 * one, and one terminal event.
 */
export class ResponseEvents {
  readonly #head: ResponseHead;
  readonly #chat: AnswerStream;
  readonly #output: Json[] = [];
  #sequence = 0;
  #started = false;
  #open: Open | undefined;

  constructor(head: ResponseHead, chat: AnswerStream) {
    this.#head = head;
    this.#chat = chat;
  }

  chunk(chunk: Json): string {
    const { reasoning, text, calls, logprobs } = this.#chat.push(chunk);
    let out = this.#start();
    if (reasoning !== '') out += this.#said('reasoning', reasoning, []);
    if (text !== '') out += this.#said('message', text, logprobs);
    for (const call of calls) out += this.#call(call);
    return out;
  }

  done(): string {
    const { status, details } = endOf(this.#chat.finish);
    let out = this.#start();
    // An answer without a word is still a message.
    if (this.#output.length === 0 && !this.#open) out += this.#openItem('message');
    out += this.#close(status === 'incomplete' ? 'incomplete' : 'completed');
    const response = responseOf(this.#head, status, this.#output, {
      incomplete_details: details,
      usage: usageOf(this.#chat.counted),
    });
    return out + this.#event(`response.${status}`, { response });
  }

  fail(error: BerthError): string {
    const out = this.#start();
    const response = responseOf(this.#head, 'failed', this.#output, {
      error: { code: 'server_error', message: error.message },
    });
    return out + this.#event('response.failed', { response });
  }

  #start(): string {
    if (this.#started) return '';
    this.#started = true;
    const response = responseOf(this.#head, 'in_progress', []);
    return this.#event('response.created', { response }) + this.#event('response.in_progress', { response });
  }

  #said(kind: 'reasoning' | 'message', delta: string, logprobs: readonly unknown[]): string {
    const opened = this.#open?.kind === kind ? '' : this.#close('completed') + this.#openItem(kind);
    const open = this.#open;
    if (!open || open.kind === 'call') return opened;
    open.text += delta;
    open.logprobs.push(...logprobs);
    const at = { item_id: open.id, output_index: open.outputIndex, content_index: 0 };
    return (
      opened +
      (kind === 'message'
        ? this.#event('response.output_text.delta', { ...at, delta, logprobs })
        : this.#event('response.reasoning_text.delta', { ...at, delta }))
    );
  }

  #openItem(kind: 'reasoning' | 'message'): string {
    const outputIndex = this.#output.length;
    const id = itemId(kind === 'message' ? 'msg' : 'rs', this.#head.id, outputIndex);
    this.#open = { kind, id, outputIndex, text: '', logprobs: [] };
    const item =
      kind === 'message' ? messageItem(id, [], 'in_progress') : reasoningItem(id, undefined, 'in_progress');
    const part = kind === 'message' ? textPart('') : { type: 'reasoning_text', text: '' };
    return (
      this.#event('response.output_item.added', { output_index: outputIndex, item }) +
      this.#event('response.content_part.added', {
        item_id: id,
        output_index: outputIndex,
        content_index: 0,
        part,
      })
    );
  }

  #call({ index, id, name, arguments: delta }: CallPiece): string {
    let out = '';
    if (this.#open?.kind !== 'call' || this.#open.call !== index) {
      out = this.#close('completed');
      const outputIndex = this.#output.length;
      const opened: Open = {
        kind: 'call',
        call: index,
        id: itemId('fc', this.#head.id, outputIndex),
        outputIndex,
        callId: id ?? `call_${this.#head.id.slice('resp_'.length)}_${index}`,
        name: name ?? '',
        text: '',
      };
      this.#open = opened;
      const item = callItem(
        opened.id,
        { id: opened.callId, name: opened.name, arguments: '' },
        'in_progress',
      );
      out += this.#event('response.output_item.added', { output_index: outputIndex, item });
    }
    if (delta === '') return out;
    this.#open.text += delta;
    const at = { item_id: this.#open.id, output_index: this.#open.outputIndex };
    return out + this.#event('response.function_call_arguments.delta', { ...at, delta });
  }

  /** Tells the whole of the open item, and keeps it for the response at the end. */
  #close(status: ItemStatus): string {
    const open = this.#open;
    if (!open) return '';
    this.#open = undefined;
    const { id, outputIndex, text } = open;
    const at = { item_id: id, output_index: outputIndex };
    let out = '';
    let item: Json;
    if (open.kind === 'call') {
      item = callItem(id, { id: open.callId, name: open.name, arguments: text }, status);
      const { name } = open;
      out += this.#event('response.function_call_arguments.done', { ...at, name, arguments: text });
    } else if (open.kind === 'message') {
      const part = textPart(text, open.logprobs);
      item = messageItem(id, [part], status);
      const done = { ...at, content_index: 0, text, logprobs: open.logprobs };
      out += this.#event('response.output_text.done', done);
      out += this.#event('response.content_part.done', { ...at, content_index: 0, part });
    } else {
      item = reasoningItem(id, text, status);
      out += this.#event('response.reasoning_text.done', { ...at, content_index: 0, text });
      const part = { type: 'reasoning_text', text };
      out += this.#event('response.content_part.done', { ...at, content_index: 0, part });
    }
    this.#output.push(item);
    return out + this.#event('response.output_item.done', { output_index: outputIndex, item });
  }

  #event(type: string, fields: Json): string {
    const data = { type, sequence_number: this.#sequence, ...fields };
    this.#sequence += 1;
    return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
  }
}

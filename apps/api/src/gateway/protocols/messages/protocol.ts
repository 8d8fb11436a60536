import { ok, type Result } from '#domain/result.js';
import { CHAT, COUNT } from '../../engine-routes.js';
import { readChatAnswer } from '../chat-answer.js';
import { numberOf, textOf } from '../json.js';
import {
  type CallFacts,
  type Prepared,
  type Protocol,
  type ProtocolCall,
  translated,
  translateFrames,
  translateWhole,
} from '../protocol.js';
import { messageOf } from './answer.js';
import { MESSAGES_ERRORS } from './errors.js';
import { chatOfMessages } from './request.js';
import { MessageEvents } from './stream.js';

/** Data and all: an empty ping breaks some parsers. */
const PING = 'event: ping\ndata: {"type":"ping"}\n\n';

class MessagesCall implements ProtocolCall {
  readonly errors = MESSAGES_ERRORS;
  readonly passing = false;
  readonly headers: readonly (readonly [string, string])[];
  readonly #id: string;
  #model = '';
  #events: MessageEvents | undefined;

  constructor({ callId }: CallFacts) {
    this.#id = `msg_${callId}`;
    this.headers = [['request-id', callId]];
  }

  prepare(bytes: Buffer): Result<Prepared> {
    const chat = translated(bytes, (body) => {
      this.#model = textOf(body['model']) ?? '';
      return chatOfMessages(body);
    });
    return chat.ok ? ok({ bytes: chat.value, target: CHAT }) : chat;
  }

  frames(bytes: Buffer): Buffer | undefined {
    const events = (this.#events ??= new MessageEvents({ id: this.#id, model: this.#model }));
    return translateFrames(
      bytes,
      (chunk) => events.chunk(chunk),
      () => events.done(),
    );
  }

  whole(bytes: Buffer): Result<Buffer> {
    return translateWhole(bytes, (answer) => {
      const chat = readChatAnswer(answer);
      return chat && messageOf({ id: this.#id, model: this.#model }, chat);
    });
  }

  comment(): string {
    return PING;
  }
}

/** How many tokens a message would be: the engine's own count, of the prompt that it would read. */
class CountCall implements ProtocolCall {
  readonly errors = MESSAGES_ERRORS;
  readonly passing = false;
  readonly headers: readonly (readonly [string, string])[];

  constructor({ callId }: CallFacts) {
    this.headers = [['request-id', callId]];
  }

  prepare(bytes: Buffer): Result<Prepared> {
    const chat = translated(bytes, (body) => chatOfMessages({ ...body, stream: undefined }));
    return chat.ok ? ok({ bytes: chat.value, target: COUNT }) : chat;
  }

  frames(): undefined {
    return undefined;
  }

  whole(bytes: Buffer): Result<Buffer> {
    return translateWhole(bytes, (answer) => {
      const counted = numberOf(answer['input_tokens']);
      return counted === undefined ? undefined : { input_tokens: counted };
    });
  }
}

export const MESSAGES: Protocol = { waits: 'by-words', open: (facts) => new MessagesCall(facts) };
export const COUNT_TOKENS: Protocol = { waits: 'by-words', open: (facts) => new CountCall(facts) };

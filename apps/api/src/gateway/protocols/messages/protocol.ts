import type { Result } from '#domain/result.js';
import { CHAT, COUNT, NATIVE_COUNT, NATIVE_MESSAGES } from '../../engine-routes.js';
import { ChatStream, readChatAnswer } from '../chat-answer.js';
import { numberOf, textOf } from '../json.js';
import {
  type CallFacts,
  inBothForms,
  type Prepared,
  type Protocol,
  type ProtocolCall,
  tellFrames,
  translateWhole,
} from '../protocol.js';
import { messageOf } from './answer.js';
import { MESSAGES_ERRORS } from './errors.js';
import { NativeMessageStream, nativeMessages, readNativeMessage } from './native.js';
import { chatOfMessages } from './request.js';
import { MessageEvents } from './stream.js';

/** Data and all: an empty ping breaks some parsers. */
const PING = 'event: ping\ndata: {"type":"ping"}\n\n';

const FIELDS = { stop: 'stop_sequences', response_format: 'output_config.format' };

class MessagesCall implements ProtocolCall {
  readonly fields = FIELDS;
  readonly errors = MESSAGES_ERRORS;
  readonly passing = false;
  readonly headers: readonly (readonly [string, string])[];
  readonly #id: string;
  #model = '';
  #native = false;
  #events: MessageEvents | undefined;

  constructor({ callId }: CallFacts) {
    this.#id = `msg_${callId}`;
    this.headers = [['request-id', callId]];
  }

  prepare(bytes: Buffer): Result<Prepared> {
    return inBothForms(bytes, {
      target: CHAT,
      native: { capability: 'messages', target: NATIVE_MESSAGES },
      own: nativeMessages,
      chat: (body) => {
        this.#model = textOf(body['model']) ?? '';
        return chatOfMessages(body);
      },
    });
  }

  asks(natively: boolean): void {
    this.#native = natively;
    this.#events = undefined;
  }

  /** An engine's own events are told anew as well: in order, with the ids and the reasons that clients look for. */
  frames(bytes: Buffer): Buffer | undefined {
    this.#events ??= new MessageEvents(
      { id: this.#id, model: this.#model },
      this.#native ? new NativeMessageStream() : new ChatStream(),
    );
    return tellFrames(bytes, this.#events, this.#native);
  }

  whole(bytes: Buffer): Result<Buffer> {
    return translateWhole(bytes, (answer) => {
      const chat = this.#native ? readNativeMessage(answer) : readChatAnswer(answer);
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
    return inBothForms(bytes, {
      target: COUNT,
      native: { capability: 'messages', target: NATIVE_COUNT },
      own: nativeMessages,
      chat: (body) => chatOfMessages({ ...body, stream: undefined }),
    });
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

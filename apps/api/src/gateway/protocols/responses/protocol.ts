import type { Result } from '#domain/result.js';
import { OPENAI_ERRORS, type ErrorShape } from '../../answer-filter.js';
import { CHAT, NATIVE_RESPONSES } from '../../engine-routes.js';
import { ChatStream, readChatAnswer } from '../chat-answer.js';
import { type Json, numberOf } from '../json.js';
import {
  type CallFacts,
  inBothForms,
  type Prepared,
  type Protocol,
  type ProtocolCall,
  tellFrames,
  translateWhole,
} from '../protocol.js';
import { type ResponseHead, wholeResponse } from './answer.js';
import { NativeResponseStream, nativeResponses, readNativeResponse } from './native.js';
import { chatOfResponses } from './request.js';
import { ResponseEvents } from './stream.js';

const FIELDS = { messages: 'input', max_tokens: 'max_output_tokens', response_format: 'text.format' };

class ResponsesCall implements ProtocolCall {
  readonly fields = FIELDS;
  readonly passing = false;
  readonly #id: string;
  readonly #createdAtSeconds: number;
  #request: Json = {};
  #native = false;
  #events: ResponseEvents | undefined;

  /** Errors before the head are OpenAI's; in a stream the response itself fails. */
  readonly errors: ErrorShape = {
    body: OPENAI_ERRORS.body,
    frame: (error) => this.#stream().fail(error),
  };

  constructor({ callId, now }: CallFacts) {
    this.#id = `resp_${callId}`;
    this.#createdAtSeconds = Math.floor(now() / 1000);
  }

  prepare(bytes: Buffer): Result<Prepared> {
    return inBothForms(bytes, {
      target: CHAT,
      native: { capability: 'responses', target: NATIVE_RESPONSES },
      own: nativeResponses,
      chat: (body) => {
        // What an answer says again; the input is let go.
        this.#request = { ...body, input: undefined };
        return chatOfResponses(body);
      },
    });
  }

  asks(natively: boolean): void {
    this.#native = natively;
    this.#events = undefined;
  }

  /** An engine's own events are told anew as well: llama-server's lack the numbers and indices that clients read. */
  frames(bytes: Buffer): Buffer | undefined {
    return tellFrames(bytes, this.#stream(), this.#native);
  }

  whole(bytes: Buffer): Result<Buffer> {
    return translateWhole(bytes, (answer) => {
      const chat = this.#native ? readNativeResponse(answer, this.#most) : readChatAnswer(answer);
      return chat && wholeResponse(this.#head, chat);
    });
  }

  get #head(): ResponseHead {
    return { id: this.#id, createdAtSeconds: this.#createdAtSeconds, request: this.#request };
  }

  get #most(): number | undefined {
    return numberOf(this.#request['max_output_tokens']);
  }

  #stream(): ResponseEvents {
    return (this.#events ??= new ResponseEvents(
      this.#head,
      this.#native ? new NativeResponseStream(this.#most) : new ChatStream(),
    ));
  }
}

export const RESPONSES: Protocol = { waits: 'by-words', open: (facts) => new ResponsesCall(facts) };

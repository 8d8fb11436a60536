import { ok, type Result } from '#domain/result.js';
import { OPENAI_ERRORS, type ErrorShape } from '../../answer-filter.js';
import { CHAT } from '../../engine-routes.js';
import { readChatAnswer } from '../chat-answer.js';
import type { Json } from '../json.js';
import {
  type CallFacts,
  type Prepared,
  type Protocol,
  type ProtocolCall,
  translated,
  translateFrames,
  translateWhole,
} from '../protocol.js';
import { type ResponseHead, wholeResponse } from './answer.js';
import { chatOfResponses } from './request.js';
import { ResponseEvents } from './stream.js';

class ResponsesCall implements ProtocolCall {
  readonly passing = false;
  readonly #id: string;
  readonly #createdAtSeconds: number;
  #request: Json = {};
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
    const chat = translated(bytes, (body) => {
      // What an answer says again; the input is let go.
      this.#request = { ...body, input: undefined };
      return chatOfResponses(body);
    });
    return chat.ok ? ok({ bytes: chat.value, target: CHAT }) : chat;
  }

  frames(bytes: Buffer): Buffer | undefined {
    const events = this.#stream();
    return translateFrames(
      bytes,
      (chunk) => events.chunk(chunk),
      () => events.done(),
    );
  }

  whole(bytes: Buffer): Result<Buffer> {
    return translateWhole(bytes, (answer) => {
      const chat = readChatAnswer(answer);
      return chat && wholeResponse(this.#head, chat);
    });
  }

  get #head(): ResponseHead {
    return { id: this.#id, createdAtSeconds: this.#createdAtSeconds, request: this.#request };
  }

  #stream(): ResponseEvents {
    return (this.#events ??= new ResponseEvents(this.#head));
  }
}

export const RESPONSES: Protocol = { waits: 'by-words', open: (facts) => new ResponsesCall(facts) };

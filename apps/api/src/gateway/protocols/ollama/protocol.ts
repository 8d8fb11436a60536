import { ok, type Result } from '#domain/result.js';
import { CHAT, COMPLETIONS, EMBEDDINGS, type EngineRoute } from '../../engine-routes.js';
import { countedIn, NOTHING_COUNTED } from '../../usage.js';
import { type Call, type CallPiece, ChatStream, readChatAnswer } from '../chat-answer.js';
import { type Json, isObject, listOf, objectOf, textOf } from '../json.js';
import {
  type CallFacts,
  type Prepared,
  type Protocol,
  type ProtocolCall,
  translated,
  translateFrames,
  translateWhole,
} from '../protocol.js';
import {
  CHAT_SHAPE,
  type Clock,
  doneReason,
  figures,
  GENERATE_SHAPE,
  type Shape,
  toolCall,
} from './answer.js';
import { OLLAMA_ERRORS } from './errors.js';
import { keepAliveSeconds } from './options.js';
import { bodyOfEmbed, bodyOfGenerate, chatOfChat, onlyLoads, streams } from './request.js';

const LINES = [
  ['content-type', 'application/x-ndjson'],
  ['cache-control', 'no-cache, no-transform'],
  ['x-accel-buffering', 'no'],
] as const;

abstract class OllamaCall implements ProtocolCall {
  readonly errors = OLLAMA_ERRORS;
  readonly passing = false;
  readonly streamHeaders = LINES;
  protected readonly clock: Clock & { coldSeconds: number };
  protected model = '';
  /** Set by who admits the call, before the answer begins. */
  coldSeconds(seconds: number): void {
    this.clock.coldSeconds = seconds;
  }

  constructor({ now }: CallFacts) {
    this.clock = { now, startedAtMs: now(), coldSeconds: 0 };
  }

  abstract prepare(bytes: Buffer): Result<Prepared>;
  abstract frames(bytes: Buffer): Buffer | undefined;
  abstract whole(bytes: Buffer): Result<Buffer>;

  protected head(): Json {
    return { model: this.model, created_at: new Date(this.clock.now()).toISOString() };
  }
}

const FIELDS = {
  max_tokens: 'options.num_predict',
  stop: 'options.stop',
  temperature: 'options.temperature',
  top_k: 'options.top_k',
  top_p: 'options.top_p',
  seed: 'options.seed',
  response_format: 'format',
};

/** `/api/chat` and `/api/generate`: lines of JSON, the last of them with the figures. */
class SpeakingCall extends OllamaCall {
  readonly fields: Readonly<Record<string, string>>;
  readonly #shape: Shape;
  readonly #body: (body: Json) => Json;
  readonly #chat = new ChatStream();
  readonly #calls: { id: string; name: string; arguments: string }[] = [];
  #streams = true;
  #raw = false;

  constructor(facts: CallFacts, shape: Shape, body: (body: Json) => Json) {
    super(facts);
    this.#shape = shape;
    this.#body = body;
    this.fields = shape === GENERATE_SHAPE ? { ...FIELDS, messages: 'prompt' } : FIELDS;
  }

  prepare(bytes: Buffer): Result<Prepared> {
    let loads: 'load' | 'unload' | undefined;
    const body = translated(bytes, (given) => {
      this.model = textOf(given['model']) ?? '';
      this.#streams = streams(given);
      this.#raw = given['raw'] === true && this.#shape === GENERATE_SHAPE;
      if (onlyLoads(given)) loads = keepAliveSeconds(given['keep_alive']) === 0 ? 'unload' : 'load';
      return this.#body(given);
    });
    if (!body.ok) return body;
    const target: EngineRoute = this.#raw ? COMPLETIONS : CHAT;
    const why = loads;
    return ok({
      bytes: body.value,
      target,
      ...(why === undefined ? {} : { whenLoaded: () => this.#loaded(why), unloads: why === 'unload' }),
    });
  }

  frames(bytes: Buffer): Buffer | undefined {
    return translateFrames(
      bytes,
      (chunk) => this.#chunk(chunk),
      () => this.#done(),
    );
  }

  whole(bytes: Buffer): Result<Buffer> {
    return translateWhole(bytes, (answer) => {
      const chat = readChatAnswer(asChat(answer));
      if (!chat) return undefined;
      return {
        ...this.head(),
        ...this.#shape({
          thinking: chat.reasoning,
          text: chat.text,
          calls: chat.calls.map(toolCall),
          ...(chat.logprobs === undefined ? {} : { logprobs: chat.logprobs }),
        }),
        done: true,
        done_reason: doneReason(chat.finish),
        ...figures(this.clock, chat.counted),
      };
    });
  }

  #chunk(chunk: Json): string {
    const { reasoning, text, calls, logprobs } = this.#chat.push(this.#raw ? asChat(chunk) : chunk);
    for (const call of calls) this.#collect(call);
    if (reasoning === '' && text === '') return '';
    return this.#line({ ...this.#shape({ thinking: reasoning, text, logprobs }), done: false });
  }

  #done(): string {
    const calls = this.#calls.map((call: Call, index) => toolCall(call, index));
    const said = calls.length === 0 ? '' : this.#line({ ...this.#shape({ text: '', calls }), done: false });
    return (
      said +
      this.#line({
        ...this.#shape({ text: '' }),
        done: true,
        done_reason: doneReason(this.#chat.finish),
        ...figures(this.clock, this.#chat.counted),
      })
    );
  }

  /** Ollama gives calls whole. */
  #collect({ index, id, name, arguments: piece }: CallPiece): void {
    const call = (this.#calls[index] ??= { id: id ?? `call_${index}`, name: '', arguments: '' });
    call.name += name ?? '';
    call.arguments += piece;
  }

  #line(fields: Json): string {
    return `${JSON.stringify({ ...this.head(), ...fields })}\n`;
  }

  /** What goes stays loaded until its room is wanted, or its own time is over. */
  #loaded(reason: 'load' | 'unload'): Buffer {
    const { total_duration, load_duration } = figures(this.clock, NOTHING_COUNTED);
    const line = this.#line({
      ...this.#shape({ text: '' }),
      done: true,
      done_reason: reason,
      total_duration,
      load_duration,
    });
    return Buffer.from(this.#streams ? line : line.trimEnd());
  }
}

/** A plain completion in the form of a chat's, whole or a chunk of it. */
function asChat(answer: Json): Json {
  const choices = listOf(answer['choices']).map((value) => {
    const choice = objectOf(value);
    if (typeof choice['text'] !== 'string') return choice;
    const words = { role: 'assistant', content: choice['text'] };
    return { ...choice, message: words, delta: words };
  });
  return { ...answer, choices };
}

class EmbedCall extends OllamaCall {
  readonly fields: Readonly<Record<string, string>>;
  readonly #field: 'input' | 'prompt';

  constructor(facts: CallFacts, field: 'input' | 'prompt') {
    super(facts);
    this.#field = field;
    this.fields = { input: field };
  }

  prepare(bytes: Buffer): Result<Prepared> {
    const body = translated(bytes, (given) => {
      this.model = textOf(given['model']) ?? '';
      return bodyOfEmbed(given, this.#field);
    });
    return body.ok ? ok({ bytes: body.value, target: EMBEDDINGS }) : body;
  }

  frames(): undefined {
    return undefined;
  }

  whole(bytes: Buffer): Result<Buffer> {
    return translateWhole(bytes, (answer) => {
      const data = answer['data'];
      if (!Array.isArray(data)) return undefined;
      const embeddings = data.filter(isObject).map(({ embedding }) => embedding);
      if (this.#field === 'prompt') return { embedding: embeddings[0] };
      const counted = countedIn(answer);
      const { total_duration, load_duration, prompt_eval_count } = figures(this.clock, counted);
      return { model: this.model, embeddings, total_duration, load_duration, prompt_eval_count };
    });
  }
}

const protocol = (open: Protocol['open']): Protocol => ({ waits: 'by-interim-answers', open });

export const OLLAMA_CHAT = protocol((facts) => new SpeakingCall(facts, CHAT_SHAPE, chatOfChat));
export const OLLAMA_GENERATE = protocol((facts) => new SpeakingCall(facts, GENERATE_SHAPE, bodyOfGenerate));
export const OLLAMA_EMBED = protocol((facts) => new EmbedCall(facts, 'input'));
export const OLLAMA_EMBEDDINGS = protocol((facts) => new EmbedCall(facts, 'prompt'));

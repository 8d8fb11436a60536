import type { Result } from '#domain/result.js';
import { ok } from '#domain/result.js';
import { type AnswerFilter, OPENAI_ERRORS } from '../answer-filter.js';
import { isObject, type Json, listOf, objectOf, parsedObject } from '../protocols/json.js';
import { dataOf, frames } from '../sse-frames.js';
import { partText, ThinkText } from './think-text.js';

/** Cheap: an answer in which no message opens with a tag is never parsed. */
const OPENS_WITH_TAG = /"content"\s*:\s*"(?:\s|\\[nrt])*(?:<|\\u003c)think(?:ing)?(?:>|\\u003e)/i;

/** Most answers hold no such sign at all, which is found without making text of them. */
const LESS_THAN = 0x3c;
const ESCAPED = Buffer.from('\\u003');
const mayHoldTag = (bytes: Buffer): boolean => bytes.includes(LESS_THAN) || bytes.includes(ESCAPED);

/**
 * Reasoning out of the answers of `/v1/chat/completions`, for engines that leave it in the text. Frames are parsed until
 * every choice is known to be past its reasoning; from then on they pass untouched.
 */
export class ReasoningFilter implements AnswerFilter {
  readonly errors = OPENAI_ERRORS;
  readonly optional = true;
  /** One for each choice; made when the first frame comes, since whole answers need none. */
  readonly #readers: ThinkText[] = [];
  #open = 1;
  #last: Json = {};

  /** How many choices the caller asked for (`n`); said before the first frame. */
  expect(choices: number): void {
    this.#open = choices;
  }

  get passing(): boolean {
    return this.#open === 0;
  }

  frames(bytes: Buffer): Buffer | undefined {
    const out: Buffer[] = [];
    if (this.#readers.length === 0)
      for (let n = 0; n < this.#open; n += 1) this.#readers.push(new ThinkText());
    for (const frame of frames(bytes)) {
      if (this.#open === 0) out.push(frame);
      else out.push(...this.#frame(frame));
    }
    return out.length === 0 ? undefined : Buffer.concat(out);
  }

  whole(bytes: Buffer): Result<Buffer> {
    if (!mayHoldTag(bytes) || !OPENS_WITH_TAG.test(bytes.toString('latin1'))) return ok(bytes);
    const answer = parsedObject(bytes.toString('utf8'));
    if (!answer) return ok(bytes);
    const choices = listOf(answer['choices']).map((choice) => {
      const message = isObject(choice) ? choice['message'] : undefined;
      if (!isObject(choice) || !isObject(message) || separated(message)) return choice;
      const { content } = message;
      if (typeof content !== 'string') return choice;
      const { reasoning, text } = partText(content);
      if (reasoning === '' && text === content) return choice;
      return { ...choice, message: { ...message, content: text, ...said(reasoning) } };
    });
    return ok(Buffer.from(JSON.stringify({ ...answer, choices })));
  }

  #frame(frame: Buffer): Buffer[] {
    const data = dataOf(frame);
    if (data === '[DONE]') return [...this.#flushAll(), frame];
    const chunk = data === undefined ? undefined : parsedObject(data);
    const choices = chunk?.['choices'];
    if (!chunk || !Array.isArray(choices)) return [frame];
    this.#last = chunk;
    const before: Buffer[] = [];
    const parted = choices.map((choice: unknown) => {
      if (!isObject(choice)) return choice;
      const [now, flushed] = this.#choice(choice);
      if (flushed) before.push(flushed);
      return now;
    });
    if (parted.every((choice, at) => choice === choices[at])) return [...before, frame];
    const left = parted.filter((choice) => choice !== undefined);
    if (left.length === 0) return before;
    return [...before, frameOf({ ...chunk, choices: left })];
  }

  /** @returns the choice for the caller, undefined when all of it is held back; and a frame that goes before it. */
  #choice(choice: Json): [Json | undefined, Buffer?] {
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0;
    const reader = this.#readers[index];
    if (!reader || reader.isSettled()) return [choice];
    const delta = objectOf(choice['delta']);
    const { content } = delta;
    const ends = choice['finish_reason'] !== null && choice['finish_reason'] !== undefined;
    const parts = typeof content === 'string' && content !== '' ? reader.push(content) : undefined;
    const last = ends || separated(delta) || delta['tool_calls'] !== undefined ? reader.settle() : undefined;
    if (reader.isSettled()) this.#open -= 1;
    if (!parts) {
      // What was held back comes before a call or the end, in a chunk of its own.
      const held = last && (last.reasoning !== '' || last.text !== '');
      return held ? [choice, this.#flushed(index, last.reasoning, last.text)] : [choice];
    }
    const reasoning = parts.reasoning + (last?.reasoning ?? '');
    const text = parts.text + (last?.text ?? '');
    if (reasoning === '' && text === content) return [choice];
    const { content: _, ...others } = delta;
    if (reasoning === '' && text === '' && Object.keys(others).length === 0 && !ends) return [undefined];
    return [
      { ...choice, delta: { ...others, ...said(reasoning), ...(text === '' ? {} : { content: text }) } },
    ];
  }

  /** A stream that ended without a finish reason. */
  #flushAll(): Buffer[] {
    return this.#readers.flatMap((reader, index) => {
      if (reader.isSettled()) return [];
      const { reasoning, text } = reader.settle();
      this.#open -= 1;
      return reasoning === '' && text === '' ? [] : [this.#flushed(index, reasoning, text)];
    });
  }

  #flushed(index: number, reasoning: string, text: string): Buffer {
    const { usage: _, timings: __, ...head } = this.#last;
    const delta = { ...said(reasoning), ...(text === '' ? {} : { content: text }) };
    return frameOf({ ...head, choices: [{ index, delta, finish_reason: null }] });
  }
}

const frameOf = (chunk: Json): Buffer => Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);

const said = (reasoning: string): Json => (reasoning === '' ? {} : { reasoning_content: reasoning });

/** The engine parts reasoning itself. */
const separated = (message: Json): boolean =>
  ['reasoning_content', 'reasoning'].some((name) => {
    const value = message[name];
    return typeof value === 'string' && value !== '';
  });

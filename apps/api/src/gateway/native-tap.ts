import { dataOf, FrameCutter, frames } from './sse-frames.js';
import type { Tap } from './stream-tap.js';
import { type Counted, Tally } from './usage.js';
import { isLast } from './protocols/chat-answer.js';
import { type Json, objectOf, parsedObject, textOf } from './protocols/json.js';

/**
 * Reads an engine's own stream of Messages or Responses on its way to its telling: counts, finds its end by its last event
 * (`[DONE]` may follow, and means nothing), and its errors, which llama-server writes without their type.
 */
export class NativeTap implements Tap {
  readonly #cutter = new FrameCutter();
  readonly #tally = new Tally();
  done = false;
  engineError: string | undefined;

  get counted(): Counted {
    return this.#tally.counted;
  }

  push(chunk: Buffer): Buffer | undefined {
    const whole = this.done || this.engineError !== undefined ? undefined : this.#cutter.push(chunk);
    return whole && this.#sift(whole);
  }

  end(): Buffer | undefined {
    const { tail } = this.#cutter;
    // Some engines end their last frame without the empty line.
    return tail && !this.done && this.engineError === undefined ? this.#sift(tail) : undefined;
  }

  #sift(whole: Buffer): Buffer | undefined {
    const kept: Buffer[] = [];
    for (const frame of frames(whole)) {
      if (this.done || this.engineError !== undefined) break;
      const data = dataOf(frame);
      const event = data === undefined ? undefined : parsedObject(data);
      if (event && this.#keep(event)) kept.push(frame);
    }
    return kept.length === 0 ? undefined : Buffer.concat(kept);
  }

  #keep(event: Json): boolean {
    const error = errorOf(event);
    if (error !== undefined) {
      this.engineError = error;
      return false;
    }
    this.#tally.hear(event);
    if (isLast(event)) this.done = true;
    return true;
  }
}

/** An engine's own words, when the event is an error. */
function errorOf(event: Json): string | undefined {
  const failed = event['type'] === 'response.failed' ? objectOf(event['response'])['error'] : undefined;
  const error = failed ?? event['error'];
  if (error === undefined || error === null) {
    return event['type'] === 'error' || event['type'] === 'response.failed' ? wordsOf(event) : undefined;
  }
  return wordsOf(error);
}

const wordsOf = (error: unknown): string =>
  textOf(error) ?? textOf(objectOf(error)['message']) ?? 'it gave no reason';

import type { LlamaModel, Token } from 'node-llama-cpp';

/** The parts of a model that turn tokens into text. */
export type Detokenizer = Pick<LlamaModel, 'detokenize' | 'isSpecialToken'>;

/** Marks that callers must see even where a vocabulary calls them control tokens: others split the text by them. */
const SHOWN_MARKS: ReadonlySet<string> = new Set([
  '<think>',
  '</think>',
  '<tool_call>',
  '</tool_call>',
  '[TOOL_CALLS]',
]);

/** A character of 4 bytes may be spread over as many tokens; beyond that the bytes are no UTF-8. */
const LONGEST_CHARACTER_TOKENS = 4;
const CONTEXT_TOKENS = 8;

/** Turns tokens into text as they come; a character that is cut between tokens is held back until it is whole. */
export class TokenText {
  #pending: Token[] = [];
  #before: Token[] = [];

  constructor(private readonly model: Detokenizer) {}

  push(token: Token): string {
    if (this.model.isSpecialToken(token)) {
      const mark = this.model.detokenize([token], true);
      return SHOWN_MARKS.has(mark) ? this.flush() + mark : '';
    }
    this.#pending.push(token);
    const text = this.model.detokenize(this.#pending, false, this.#before);
    if (text.endsWith('\ufffd') && this.#pending.length < LONGEST_CHARACTER_TOKENS) return '';
    return this.#take(text);
  }

  /** What is held back, at the end. */
  flush(): string {
    if (this.#pending.length === 0) return '';
    return this.#take(this.model.detokenize(this.#pending, false, this.#before));
  }

  #take(text: string): string {
    this.#before = [...this.#before, ...this.#pending].slice(-CONTEXT_TOKENS);
    this.#pending = [];
    return text;
  }
}

/** Ends a text before the first stop string; holds back what may be the beginning of one. */
export class StopStrings {
  #held = '';

  constructor(private readonly stops: readonly string[]) {}

  push(text: string): { text: string; stopped: boolean; stop?: string } {
    const all = this.#held + text;
    let first = -1;
    let found = '';
    for (const stop of this.stops) {
      const at = all.indexOf(stop);
      if (at >= 0 && (first < 0 || at < first)) [first, found] = [at, stop];
    }
    if (first >= 0) {
      this.#held = '';
      return { text: all.slice(0, first), stopped: true, stop: found };
    }
    const keep = this.#longestBeginning(all);
    this.#held = all.slice(all.length - keep);
    return { text: all.slice(0, all.length - keep), stopped: false };
  }

  flush(): string {
    const held = this.#held;
    this.#held = '';
    return held;
  }

  /** Length of the longest end of `text` that a stop string begins with. */
  #longestBeginning(text: string): number {
    let longest = 0;
    for (const stop of this.stops) {
      for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
        if (text.endsWith(stop.slice(0, length))) {
          longest = length;
          break;
        }
      }
    }
    return longest;
  }
}

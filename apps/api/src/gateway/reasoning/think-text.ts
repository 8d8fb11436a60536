/** A piece of a message, parted into what the model thought and what it answers. */
export interface Parted {
  readonly reasoning: string;
  readonly text: string;
}

const NAMES = ['think>', 'thinking>'] as const;
/** Of a tag, and of white space before it: `<thinking>` has as many. */
const LONGEST_HELD = 10;
const CLOSING = /<\/think(?:ing)?>/i;
const OPENING = /^<think(?:ing)?>/i;
const NOTHING: Parted = { reasoning: '', text: '' };

/**
 * Takes `<think>` and `<thinking>` blocks that open a message out of a text that comes in pieces. A block that is never
 * closed is reasoning to the end; white space behind a block belongs to it. Whatever way the text was cut, the parts are
 * the same.
 */
export class ThinkText {
  #where: 'opening' | 'inside' | 'behind' | 'answer' = 'opening';
  #held = '';

  /** From here on everything is answer. */
  isSettled(): boolean {
    return this.#where === 'answer';
  }

  push(piece: string): Parted {
    if (this.#where === 'answer') return { reasoning: '', text: piece };
    this.#held += piece;
    let reasoning = '';
    for (;;) {
      if (this.#where === 'inside') {
        const close = CLOSING.exec(this.#held);
        if (!close) {
          const keep = possibleClosing(this.#held);
          reasoning += this.#held.slice(0, this.#held.length - keep);
          this.#held = this.#held.slice(this.#held.length - keep);
          return { reasoning, text: '' };
        }
        reasoning += this.#held.slice(0, close.index);
        this.#held = this.#held.slice(close.index + close[0].length);
        this.#where = 'behind';
      }
      const rest = this.#held.trimStart();
      const tooFarIn = this.#where === 'opening' && this.#held.length - rest.length > LONGEST_HELD;
      const open = tooFarIn ? null : OPENING.exec(rest);
      if (open) {
        this.#held = rest.slice(open[0].length);
        this.#where = 'inside';
        continue;
      }
      if (this.#where === 'behind') this.#held = rest;
      if (!tooFarIn && (rest === '' || couldOpen(rest))) return { reasoning, text: '' };
      return { reasoning, text: this.#release() };
    }
  }

  /** The message has ended: what was held back, as what it is. */
  flush(): Parted {
    if (this.#held === '') return NOTHING;
    if (this.#where !== 'inside') return { reasoning: '', text: this.#release() };
    const reasoning = this.#held;
    this.#held = '';
    return { reasoning, text: '' };
  }

  /** The engine parts the message itself, or there is no more text: nothing is looked for any longer. */
  settle(): Parted {
    const rest = this.flush();
    this.#where = 'answer';
    return rest;
  }

  #release(): string {
    const text = this.#held;
    this.#held = '';
    this.#where = 'answer';
    return text;
  }
}

/** A whole message at once. */
export function partText(text: string): Parted {
  const reader = new ThinkText();
  const first = reader.push(text);
  const rest = reader.flush();
  return { reasoning: first.reasoning + rest.reasoning, text: first.text + rest.text };
}

function couldOpen(text: string): boolean {
  if (text[0] !== '<' || text.length > LONGEST_HELD) return false;
  const after = text.slice(1).toLowerCase();
  return NAMES.some((name) => name.startsWith(after));
}

/** Length of the longest end of `text` that a closing tag begins with. */
function possibleClosing(text: string): number {
  const at = text.lastIndexOf('<');
  if (at < 0 || text.length - at > LONGEST_HELD) return 0;
  const tail = text.slice(at + 1).toLowerCase();
  return NAMES.some((name) => `/${name}`.startsWith(tail)) ? text.length - at : 0;
}

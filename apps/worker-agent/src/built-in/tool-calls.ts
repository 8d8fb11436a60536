import { randomUUID } from 'node:crypto';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, as OpenAI gives it. */
  readonly arguments: string;
}

export type Piece =
  { readonly kind: 'text'; readonly text: string } | { readonly kind: 'call'; readonly call: ToolCall };

const OPEN = '<tool_call>';
const CLOSE = '</tool_call>';

/**
 * Takes calls in the form of Hermes and Qwen (`<tool_call>{"name": …, "arguments": {…}}</tool_call>`) out of a text that
 * comes in pieces. What is no such call after all is given out as the text that it is.
 */
export class ToolCallText {
  #held = '';
  #inside = false;

  push(text: string): readonly Piece[] {
    this.#held += text;
    const out: Piece[] = [];
    for (;;) {
      const mark = this.#inside ? CLOSE : OPEN;
      const at = this.#held.indexOf(mark);
      if (at < 0) break;
      const before = this.#held.slice(0, at);
      this.#held = this.#held.slice(at + mark.length);
      out.push(this.#inside ? called(before) : { kind: 'text', text: before });
      this.#inside = !this.#inside;
    }
    if (!this.#inside) {
      const keep = beginningOf(OPEN, this.#held);
      out.push({ kind: 'text', text: this.#held.slice(0, this.#held.length - keep) });
      this.#held = this.#held.slice(this.#held.length - keep);
    }
    return out.filter((piece) => piece.kind === 'call' || piece.text !== '');
  }

  /** What is left when the model ended; a call that was cut off is no call. */
  flush(): readonly Piece[] {
    const text = (this.#inside ? OPEN : '') + this.#held;
    [this.#held, this.#inside] = ['', false];
    return text === '' ? [] : [{ kind: 'text', text }];
  }
}

function called(text: string): Piece {
  const raw: Piece = { kind: 'text', text: OPEN + text + CLOSE };
  try {
    const parsed = JSON.parse(text) as { name?: unknown; arguments?: unknown } | null;
    if (typeof parsed?.name !== 'string') return raw;
    const given = parsed.arguments ?? {};
    return {
      kind: 'call',
      call: {
        id: `call_${randomUUID().replaceAll('-', '')}`,
        name: parsed.name,
        arguments: typeof given === 'string' ? given : JSON.stringify(given),
      },
    };
  } catch {
    // The model wrote something else between the marks.
    return raw;
  }
}

/** Length of the longest end of `text` that `mark` begins with. */
function beginningOf(mark: string, text: string): number {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(mark.slice(0, length))) return length;
  }
  return 0;
}

import { headersOf, urlOf } from '../api/client.js';
import { session } from '../api/session.svelte.js';
import { StreamReader } from './stream-reader.js';

export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly text: string;
  readonly reasoning?: string;
}

export interface ChatOptions {
  readonly model: string;
  readonly system: string;
  readonly maxTokens: number;
  readonly temperature: number | undefined;
}

/** A conversation with one model, through the same front door that clients use. */
export class Chat {
  turns = $state.raw<readonly Turn[]>([]);
  busy = $state(false);
  /** What Berth says while nothing can come yet. */
  waiting = $state<string | undefined>();
  failure = $state<string | undefined>();
  callId = $state<string | undefined>();
  firstSeconds = $state<number | undefined>();
  totalSeconds = $state<number | undefined>();
  outputTokens = $state<number | undefined>();
  promptTokens = $state<number | undefined>();
  #leaving: AbortController | undefined;

  clear(): void {
    this.stop();
    this.turns = [];
    this.failure = undefined;
    this.callId = undefined;
    this.firstSeconds = undefined;
    this.totalSeconds = undefined;
  }

  /** Berth notices that the connection is gone and frees the engine. */
  stop(): void {
    this.#leaving?.abort();
  }

  async say(text: string, options: ChatOptions): Promise<void> {
    this.turns = [...this.turns, { role: 'user', text }];
    const asked = this.turns;
    this.turns = [...asked, { role: 'assistant', text: '' }];
    this.busy = true;
    this.failure = undefined;
    this.waiting = undefined;
    this.firstSeconds = this.totalSeconds = this.outputTokens = this.promptTokens = undefined;
    const leaving = new AbortController();
    this.#leaving = leaving;
    const began = performance.now();
    try {
      await this.#stream(asked, options, leaving.signal, began);
    } catch (error) {
      if (!leaving.signal.aborted) this.failure = error instanceof Error ? error.message : String(error);
    }
    this.totalSeconds = (performance.now() - began) / 1000;
    this.waiting = undefined;
    this.busy = false;
    if (this.turns.at(-1)?.text === '' && this.turns.at(-1)?.reasoning === undefined) this.turns = asked;
  }

  async #stream(
    turns: readonly Turn[],
    options: ChatOptions,
    signal: AbortSignal,
    began: number,
  ): Promise<void> {
    const response = await fetch(urlOf('v1/chat/completions'), {
      method: 'POST',
      headers: headersOf({ 'content-type': 'application/json' }),
      body: JSON.stringify({
        model: options.model,
        stream: true,
        stream_options: { include_usage: true },
        max_tokens: options.maxTokens,
        ...(options.temperature === undefined ? {} : { temperature: options.temperature }),
        messages: [
          ...(options.system === '' ? [] : [{ role: 'system', content: options.system }]),
          ...turns.map(({ role, text }) => ({ role, content: text })),
        ],
      }),
      signal,
    }).catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw new Error('Berth does not answer. It may be stopped, or the network is gone.');
    });
    this.callId = response.headers.get('x-berth-call') ?? undefined;
    if (!response.ok || !response.body) throw new Error(await refusalOf(response));
    const reader = new StreamReader();
    for await (const text of textsOf(response.body)) {
      for (const piece of reader.take(text)) {
        if (piece.kind === 'waiting') this.waiting = piece.text;
        else if (piece.kind === 'failed') throw new Error(piece.message);
        else if (piece.kind === 'usage') {
          this.promptTokens = piece.promptTokens;
          this.outputTokens = piece.outputTokens;
        } else if (piece.kind !== 'done') this.#add(piece.kind, piece.text, began);
      }
    }
  }

  #add(kind: 'text' | 'reasoning', text: string, began: number): void {
    this.waiting = undefined;
    this.firstSeconds ??= (performance.now() - began) / 1000;
    const last = this.turns.at(-1);
    if (!last) return;
    const grown = kind === 'text' ? { text: last.text + text } : { reasoning: (last.reasoning ?? '') + text };
    this.turns = [...this.turns.slice(0, -1), { ...last, ...grown }];
  }
}

async function* textsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

async function refusalOf(response: Response): Promise<string> {
  const text = await response.text();
  let message = `The server answered ${response.status} ${response.statusText}.`;
  try {
    message = (JSON.parse(text) as { error?: { message?: string } }).error?.message ?? message;
  } catch {
    // Not of Berth: a proxy between says what it says.
  }
  if (response.status === 401) session.keepOut(message);
  return message;
}

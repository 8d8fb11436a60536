import type { LlamaLogLevel } from 'node-llama-cpp';

/** An error line may be on its way from the library's thread when the call that it explains has failed. */
const LAST_WORDS_MS = 100;
const AWAITED_MS = 5000;

/** The library's load-time lines. They come from its own threads, a little after the calls that caused them. */
export class EngineLog {
  #lines: string[] = [];
  #onLine: (() => void) | undefined;

  constructor(private readonly echo: (level: LlamaLogLevel, line: string) => void = () => undefined) {}

  readonly write = (level: LlamaLogLevel, message: string): void => {
    // Dots are a progress bar.
    if (/^\.*$/.test(message)) return;
    this.#lines.push(message);
    this.echo(level, message);
    this.#onLine?.();
  };

  get text(): string {
    return this.#lines.join('\n');
  }

  clear(): void {
    this.#lines = [];
  }

  /**
   * Resolves with the text once it holds what is awaited and what was on its way with it, or without it when that does
   * not come.
   */
  async until(awaited: RegExp): Promise<string> {
    if (!awaited.test(this.text)) await this.#told(awaited);
    // The library hands over in one turn what it has said by then.
    await new Promise(setImmediate);
    return this.text;
  }

  async #told(awaited: RegExp): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      timer = setTimeout(resolve, AWAITED_MS);
      this.#onLine = () => {
        if (awaited.test(this.text)) resolve();
      };
    });
    clearTimeout(timer);
    this.#onLine = undefined;
  }

  async lastWords(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, LAST_WORDS_MS));
  }
}

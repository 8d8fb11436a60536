/** What is remembered grows with the number of files; written at each change of thousands, it would be most of the work. */
const EVERY_MS = 5000;

/** Writes a memory a moment after it changed, however often it changes until then. A crash loses that moment. */
export class MemoryWriter {
  #due: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  /** @param write what is known by then; where it fails, `onError` hears of it and the next change tries again. */
  constructor(
    private readonly write: () => Promise<void>,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** It changed. */
  changed(): void {
    this.#due ??= setTimeout(() => void this.now(), EVERY_MS).unref();
  }

  /** Resolves when what is known now is written, or could not be. */
  now(): Promise<void> {
    clearTimeout(this.#due);
    this.#due = undefined;
    this.#writing = this.#writing.then(() => this.write()).catch(this.onError);
    return this.#writing;
  }
}

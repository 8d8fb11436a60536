/** The last ids that were added: a bounded memory that tells a repetition which comes soon. */
export class RecentIds {
  readonly #ids = new Set<string>();
  readonly #most: number;
  readonly #onForgotten: (id: string) => void;

  constructor(most: number, onForgotten: (id: string) => void = () => undefined) {
    this.#most = most;
    this.#onForgotten = onForgotten;
  }

  /** @returns false when it is among the last that were added. */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    if (this.#ids.size > this.#most) {
      const [oldest] = this.#ids;
      if (oldest !== undefined) {
        this.#ids.delete(oldest);
        this.#onForgotten(oldest);
      }
    }
    return true;
  }
}

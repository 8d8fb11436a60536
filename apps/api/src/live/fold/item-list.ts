/**
 * The newest items of one topic, and all that have not ended, however old. What has ended leaves oldest first.
 */
export class ItemList<Item> {
  readonly #items = new Map<string, Item>();
  readonly #kept: number;
  readonly #hasEnded: (item: Item) => boolean;
  #ended = 0;

  constructor(kept: number, hasEnded: (item: Item) => boolean) {
    this.#kept = kept;
    this.#hasEnded = hasEnded;
  }

  get(id: string): Item | undefined {
    return this.#items.get(id);
  }

  put(id: string, item: Item): void {
    const before = this.#items.get(id);
    if (before !== undefined && this.#hasEnded(before)) this.#ended -= 1;
    this.#items.set(id, item);
    if (!this.#hasEnded(item)) return;
    this.#ended += 1;
    if (this.#ended > this.#kept) this.#dropOldest();
  }

  /** Oldest first. */
  get all(): readonly Item[] {
    return [...this.#items.values()];
  }

  #dropOldest(): void {
    for (const [id, item] of this.#items) {
      if (!this.#hasEnded(item)) continue;
      this.#items.delete(id);
      this.#ended -= 1;
      return;
    }
  }
}

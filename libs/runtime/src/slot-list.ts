/** What can be in one list; the list writes its place here. */
export interface Slotted {
  slot: number;
}

/** Where something is that is in no list. */
export const NO_SLOT = -1;

/**
 * A set of things that come and go thousands of times a second, in no order. A `Set` would do, and hold them in memory
 * long after: each time its table is copied the old one keeps what was in it and points to the next, so once a table has
 * become old, young garbage collections carry over everything that was ever under way.
 */
export class SlotList<T extends Slotted> implements Iterable<T> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** Once in the list is enough: a second time changes nothing. */
  add(item: T): void {
    if (this.has(item)) return;
    item.slot = this.#items.length;
    this.#items.push(item);
  }

  has(item: T): boolean {
    return this.#items[item.slot] === item;
  }

  /** @returns false when it was not in the list. */
  delete(item: T): boolean {
    if (!this.has(item)) return false;
    const last = this.#items.pop();
    if (last !== undefined && last !== item) {
      this.#items[item.slot] = last;
      last.slot = item.slot;
    }
    item.slot = NO_SLOT;
    return true;
  }

  /** Those that are in it now; to be copied where some are taken out on the way. */
  [Symbol.iterator](): Iterator<T> {
    return this.#items.values();
  }
}

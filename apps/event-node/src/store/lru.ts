/** A map that forgets what was used longest ago, so that memory does not grow with the log. */
export class Lru<K, V> {
  readonly #entries = new Map<K, V>();
  constructor(readonly capacity: number) {}

  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    // Moving an entry on every hit would cost more than the rare reload of one that is still in use.
    if (this.#entries.size * 2 > this.capacity) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    return value;
  }

  set(key: K, value: V): void {
    this.#entries.set(key, value);
    if (this.#entries.size <= this.capacity) return;
    const oldest = this.#entries.keys().next();
    if (!oldest.done) this.#entries.delete(oldest.value);
  }

  clear(): void {
    this.#entries.clear();
  }
}

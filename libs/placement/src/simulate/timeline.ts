/** Things to come, by time; of equal times the one put in first. A binary heap. */
export class Timeline<T> {
  readonly #heap: { readonly atMs: number; readonly order: number; readonly what: T }[] = [];
  #order = 0;

  get nextMs(): number | undefined {
    return this.#heap[0]?.atMs;
  }

  add(atMs: number, what: T): void {
    const heap = this.#heap;
    heap.push({ atMs, order: (this.#order += 1), what });
    let i = heap.length - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!this.#before(i, parent)) break;
      this.#swap(i, parent);
      i = parent;
    }
  }

  take(): T | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined) return undefined;
    if (heap.length > 0) {
      heap[0] = last;
      this.#sink();
    }
    return first.what;
  }

  #sink(): void {
    let i = 0;
    for (;;) {
      const left = 2 * i + 1;
      let least = i;
      if (this.#before(left, least)) least = left;
      if (this.#before(left + 1, least)) least = left + 1;
      if (least === i) return;
      this.#swap(i, least);
      i = least;
    }
  }

  #before(i: number, j: number): boolean {
    const a = this.#heap[i];
    const b = this.#heap[j];
    if (!a || !b) return false;
    return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
  }

  #swap(i: number, j: number): void {
    const a = this.#heap[i];
    const b = this.#heap[j];
    if (!a || !b) return;
    this.#heap[i] = b;
    this.#heap[j] = a;
  }
}

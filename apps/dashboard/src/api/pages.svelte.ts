import type { WirePage } from '#domain/wire/index.js';
import { ApiFailure, get, type Query } from './client.js';

/** A list that is read page by page: the newest first, older ones when somebody asks. */
export class PagedList<T> {
  items = $state.raw<readonly T[]>([]);
  failure = $state.raw<ApiFailure | undefined>();
  loading = $state(true);
  next = $state<string | undefined>();
  readonly #path: string;
  readonly #query: () => Query;
  #leaving: AbortController | undefined;

  /** Called while a component is made. It begins anew whenever what the query reads has changed. */
  constructor(path: string, query: () => Query) {
    this.#path = path;
    this.#query = query;
    $effect(() => {
      void this.#read(query(), undefined);
      return () => this.#leaving?.abort();
    });
  }

  more(): void {
    if (this.next !== undefined) void this.#read(this.#query(), this.next);
  }

  reload(): void {
    void this.#read(this.#query(), undefined);
  }

  async #read(query: Query, after: string | undefined): Promise<void> {
    this.#leaving?.abort();
    const leaving = new AbortController();
    this.#leaving = leaving;
    this.loading = true;
    try {
      const page = await get<WirePage<T>>(this.#path, { ...query, after }, leaving.signal);
      if (leaving.signal.aborted) return;
      this.items = after === undefined ? page.items : [...this.items, ...page.items];
      this.next = page.next;
      this.failure = undefined;
    } catch (error) {
      if (leaving.signal.aborted) return;
      this.failure = error instanceof ApiFailure ? error : new ApiFailure(0, 'unknown', String(error));
    }
    this.loading = false;
  }
}

import { dependsOn } from './depends-on.js';
import { ApiFailure } from './client.js';

/** Something that is asked of the server: nothing yet, the answer, or why there is none. The last answer stays while it is asked again. */
export class Resource<T> {
  value = $state.raw<T | undefined>();
  failure = $state.raw<ApiFailure | undefined>();
  loading = $state(true);
  #asked = $state(0);

  /** Called while a component is made. `load` is called again whenever something reactive that it reads has changed. */
  constructor(load: (signal: AbortSignal) => Promise<T>) {
    $effect(() => {
      dependsOn(this.#asked);
      const leaving = new AbortController();
      const answer = load(leaving.signal);
      void this.#take(answer, leaving.signal);
      return () => leaving.abort();
    });
  }

  reload(): void {
    this.#asked += 1;
  }

  async #take(answer: Promise<T>, signal: AbortSignal): Promise<void> {
    this.loading = true;
    try {
      const value = await answer;
      if (signal.aborted) return;
      this.value = value;
      this.failure = undefined;
    } catch (error) {
      if (signal.aborted) return;
      this.failure = error instanceof ApiFailure ? error : new ApiFailure(0, 'unknown', String(error));
    }
    this.loading = false;
  }
}

/** The last states of one stream, so that a decision can be looked at from the revision that it was based on. */
export class Recent<S extends { readonly revision: number }> {
  readonly #states: S[];
  readonly #kept: number;

  constructor(initial: S, kept: number) {
    this.#states = [initial];
    this.#kept = kept;
  }

  get latest(): S {
    const state = this.#states.at(-1);
    if (!state) throw new RangeError('a stream has no state');
    return state;
  }

  push(state: S): void {
    this.#states.push(state);
    if (this.#states.length > 2 * this.#kept) this.#states.splice(0, this.#kept);
  }

  /** The state at a revision; undefined when it is too far back, or not reached. */
  at(revision: number): S | undefined {
    for (let i = this.#states.length - 1; i >= 0; i--) {
      const state = this.#states[i];
      if (state && state.revision <= revision) return state.revision === revision ? state : undefined;
    }
    return undefined;
  }
}

import { isDeepStrictEqual } from 'node:util';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { streamNamed } from '../catalogue.js';
import type { Check, Report } from './violation.js';

/** One stream's fold, with its state inside. */
export interface Fold {
  take(recorded: Recorded<BerthEvent>): void;
  state(): unknown;
  /** Goes on from a state that was kept elsewhere. */
  restore(state: unknown): void;
}

/** How a stream is folded; undefined for one that nothing is folded from. */
export type FoldFor = (stream: string) => (() => Fold) | undefined;

export const domainFolds: FoldFor = (stream) => {
  const known = streamNamed(stream);
  return (
    known &&
    (() => {
      let state = known.fold.initial();
      return {
        take: (recorded) => (state = known.fold.evolve(state, recorded)),
        state: () => state,
        restore: (from) => (state = from),
      };
    })
  );
};

interface Followed {
  /** Folded from the first event, in one go. */
  readonly plain: Fold;
  /** Folded the same way: a second time. */
  readonly again: Fold;
  /** Goes on from a copied state now and then, as from a snapshot, and gets each event twice. */
  readonly split: Fold;
  /** The last state that was looked at, and a copy from then: a later event must not have changed it. */
  kept: { readonly state: unknown; readonly copy: unknown } | undefined;
  events: number;
  last: Recorded<BerthEvent>;
}

/**
 * Invariant 6: a fold depends on the log alone. Folded twice, from any snapshot, and with every event handed over twice,
 * the state is the same, and no state that was handed out changes afterwards.
 */
export class FoldsAgree implements Check {
  readonly #report: Report;
  readonly #foldFor: FoldFor;
  readonly #streams = new Map<string, Followed>();
  #lastCommit = -1n;

  constructor(report: Report, foldFor: FoldFor = domainFolds) {
    this.#report = report;
    this.#foldFor = foldFor;
  }

  take(recorded: Recorded<BerthEvent>): void {
    const { stream, revision, position } = recorded;
    if (position.commit <= this.#lastCommit)
      this.#report(6, recorded, `Position ${position.commit} comes after ${this.#lastCommit}: no order.`);
    this.#lastCommit = position.commit;
    const followed = this.#streams.get(stream) ?? this.#follow(recorded);
    if (!followed) return;
    if (followed.events > 0 && revision <= followed.last.revision)
      this.#report(6, recorded, `Revision ${revision} comes after ${followed.last.revision}: no order.`);
    if (isSplit(followed.events)) this.#snapshot(followed, recorded);
    followed.plain.take(recorded);
    followed.again.take(recorded);
    followed.split.take(recorded);
    followed.split.take(recorded);
    followed.events++;
    followed.last = recorded;
  }

  finish(): void {
    for (const followed of this.#streams.values()) {
      this.#unchanged(followed, followed.last);
      const { last } = followed;
      const state = followed.plain.state();
      if (!isDeepStrictEqual(state, followed.again.state()))
        this.#report(6, last, 'Folding the stream twice gives two different states.');
      if (!isDeepStrictEqual(state, followed.split.state()))
        this.#report(6, last, 'Folding the stream from snapshots gives another state than folding it whole.');
    }
  }

  #follow(first: Recorded<BerthEvent>): Followed | undefined {
    const fold = this.#foldFor(first.stream);
    if (!fold) return undefined;
    const followed: Followed = {
      plain: fold(),
      again: fold(),
      split: fold(),
      kept: undefined,
      events: 0,
      last: first,
    };
    this.#streams.set(first.stream, followed);
    return followed;
  }

  #snapshot(followed: Followed, at: Recorded<BerthEvent>): void {
    this.#unchanged(followed, at);
    const state = followed.plain.state();
    followed.kept = { state, copy: structuredClone(state) };
    followed.split.restore(structuredClone(state));
  }

  #unchanged({ kept }: Followed, at: Recorded<BerthEvent>): void {
    if (kept && !isDeepStrictEqual(kept.state, kept.copy))
      this.#report(6, at, 'A state that was folded before has been changed by a later event.');
  }
}

/** After each of the first events of a stream, then less and less often. */
const isSplit = (events: number): boolean =>
  events < 64 || (events & (events - 1)) === 0 || events % 997 === 0;

import { isDeepStrictEqual } from 'node:util';
import { evolveCalls, initialCalls } from '#domain/calls/call-history.js';
import { evolveCatalog, initialCatalog } from '#domain/catalog/catalog.js';
import type {
  BerthEvent,
  CallEvent,
  CatalogEvent,
  FleetEvent,
  HistoryEvent,
  Recorded,
  WorkerEvent,
} from '#domain/events/index.js';
import { evolveFleet, initialFleet } from '#domain/fleet/fleet.js';
import { evolveHistory, initialHistory } from '#domain/history/history.js';
import { modelKey, workerId } from '#domain/ids.js';
import { evolveWorker, initialWorker } from '#domain/worker/evolve.js';
import { parseHistoryStream } from '../streams.js';
import type { Check, Report } from './violation.js';

/** One stream's fold, with its state inside. */
export interface Fold {
  take(recorded: Recorded<BerthEvent>): void;
  state(): unknown;
  /** Goes on from a state that was kept elsewhere. */
  restore(state: unknown): void;
}

function foldOf<S, E extends BerthEvent>(
  initial: S,
  evolve: (state: S, recorded: Recorded<E>) => S,
): () => Fold {
  return () => {
    let state = initial;
    return {
      take: (recorded) => (state = evolve(state, recorded as Recorded<E>)),
      state: () => state,
      restore: (from) => (state = from as S),
    };
  };
}

/** How a stream is folded; undefined for one that nothing is folded from. */
export type FoldFor = (stream: string) => (() => Fold) | undefined;

export const domainFolds: FoldFor = (stream) => {
  const dash = stream.indexOf('-');
  const id = stream.slice(dash + 1);
  switch (stream.slice(0, dash)) {
    case 'worker':
      return foldOf(initialWorker(workerId(id)), (s, r: Recorded<WorkerEvent>) => evolveWorker(s, r));
    case 'calls':
      return foldOf(initialCalls(modelKey(id)), (s, r: Recorded<CallEvent>) => evolveCalls(s, r));
    case 'catalog':
      return foldOf(initialCatalog(workerId(id)), (s, r: Recorded<CatalogEvent>) => evolveCatalog(s, r));
    case 'fleet':
      return foldOf(initialFleet(), (s, r: Recorded<FleetEvent>) => evolveFleet(s, r));
    case 'history': {
      const pair = parseHistoryStream(stream);
      return (
        pair &&
        foldOf(initialHistory(pair.workerId, pair.modelKey), (s, r: Recorded<HistoryEvent>) =>
          evolveHistory(s, r),
        )
      );
    }
    default:
      return undefined;
  }
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

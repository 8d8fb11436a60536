import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { SEEN_IDS } from '#domain/decider.js';
import type { EventLog } from '../event-log.js';
import { readUntil } from '../read-until.js';
import { RecentIds } from '../recent-ids.js';
import { CallsEnd } from './calls-end.js';
import { ChargesWithinLimits } from './charges-within-limits.js';
import { DecisionsFirst } from './decisions-first.js';
import { Drains } from './drains.js';
import { EventForm } from './event-form.js';
import { type FoldFor, FoldsAgree } from './folds-agree.js';
import { ResidentLives } from './resident-lives.js';
import type { Check, Report, Violation } from './violation.js';

export type { InvariantNumber, Violation } from './violation.js';

export interface InvariantOptions {
  /** True when nothing was under way as the log was read: then everything that was begun must have ended. */
  readonly atRest: boolean;
  readonly folds?: FoldFor;
  /** Whether each event is held to the rules of form too; it is, unless a test tells its story in short names. */
  readonly form?: boolean;
}

/** Checks a log that is handed over in its order, event by event. */
export class InvariantChecker {
  readonly violations: Violation[] = [];
  readonly #options: InvariantOptions;
  readonly #checks: readonly Check[];
  readonly #folds: Check;
  readonly #recent = new Map<string, RecentIds>();

  constructor(options: InvariantOptions) {
    this.#options = options;
    const report: Report = (invariant, at, message) =>
      void this.violations.push({ invariant, stream: at.stream, revision: at.revision, message });
    this.#folds = new FoldsAgree(report, options.folds);
    this.#checks = [
      new ResidentLives(report),
      new DecisionsFirst(report),
      new ChargesWithinLimits(report),
      new Drains(report),
      new CallsEnd(report),
      ...(options.form === false ? [] : [new EventForm(report)]),
    ];
  }

  take(recorded: Recorded<BerthEvent>): void {
    this.#folds.take(recorded);
    // A retried fact may stand in the log twice under one id: it happened once.
    if (this.#repeats(recorded)) return;
    for (const check of this.#checks) check.take(recorded);
  }

  /** By the same memory as the folds have: retries come soon, and what is held does not grow with the log. */
  #repeats({ stream, id }: Recorded<BerthEvent>): boolean {
    const recent = this.#recent.get(stream) ?? new RecentIds(SEEN_IDS);
    this.#recent.set(stream, recent);
    return !recent.add(id);
  }

  /** In the order in which they were found. */
  finish(): readonly Violation[] {
    for (const check of [...this.#checks, this.#folds]) check.finish(this.#options.atRest);
    return this.violations;
  }
}

export function checkEvents(
  events: Iterable<Recorded<BerthEvent>>,
  options: InvariantOptions,
): readonly Violation[] {
  const checker = new InvariantChecker(options);
  for (const recorded of events) checker.take(recorded);
  return checker.finish();
}

/**
 * Reads the whole log, up to where it is when it has been read, and checks the six invariants of the catalogue and the
 * form of every event.
 * @throws when the log is out of reach, or ends the reading before its end: what was not read keeps no invariant.
 */
export async function checkInvariants(
  log: EventLog,
  options: InvariantOptions,
): Promise<readonly Violation[]> {
  await log.identity();
  const checker = new InvariantChecker(options);
  await readUntil(log, [], undefined, (recorded) => {
    checker.take(recorded);
    return true;
  });
  return checker.finish();
}

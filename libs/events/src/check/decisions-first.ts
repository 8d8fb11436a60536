import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { EvictionReason } from '#domain/events/worker-events.js';
import type { ResidentId } from '#domain/ids.js';
import type { Check, Report } from './violation.js';

/** No placement asks for them: an operator's, a shutdown's, one of a resident whose file on disk is another by now. */
const WITHOUT_DECISION: ReadonlySet<EvictionReason> = new Set(['operator', 'shutdown', 'artifact']);

/** Invariant 2: what is started or evicted was decided before, in the same stream, where a decision is needed. */
export class DecisionsFirst implements Check {
  readonly #report: Report;
  /** Resident that each decision makes, by stream and decision. */
  readonly #decided = new Map<string, ResidentId>();

  constructor(report: Report) {
    this.#report = report;
  }

  take(recorded: Recorded<BerthEvent>): void {
    const { event, stream } = recorded;
    if (event.type === 'PlacementDecided' || event.type === 'UnloadDecided') {
      this.#decided.set(`${stream} ${event.data.decisionId}`, event.data.residentId);
    } else if (event.type === 'LoadStarted') {
      const { decisionId, residentId } = event.data;
      const decided = this.#decided.get(`${stream} ${decisionId}`);
      if (decided === undefined)
        this.#report(
          2,
          recorded,
          `The load of resident ${residentId} names decision ${decisionId}, which does not precede it.`,
        );
      else if (decided !== residentId)
        this.#report(
          2,
          recorded,
          `The load of resident ${residentId} names decision ${decisionId}, which is about resident ${decided}.`,
        );
    } else if (event.type === 'EvictionStarted') {
      const { decisionId, residentId, reason } = event.data;
      if (WITHOUT_DECISION.has(reason)) return;
      if (decisionId === undefined)
        this.#report(2, recorded, `The eviction of resident ${residentId} (${reason}) names no decision.`);
      else if (!this.#decided.has(`${stream} ${decisionId}`))
        this.#report(
          2,
          recorded,
          `The eviction of resident ${residentId} names decision ${decisionId}, which does not precede it.`,
        );
    }
  }

  finish(): void {
    // Everything is told by the order of events.
  }
}

import type { BerthEvent, Recorded } from '#domain/events/index.js';

/**
 * 1 lives of residents, 2 decisions before acts, 3 charges within limits, 4 drains, 5 calls, 6 folds; `form`: the rules
 * that hold for every event by itself.
 */
export type InvariantNumber = 1 | 2 | 3 | 4 | 5 | 6 | 'form';

export interface Violation {
  readonly invariant: InvariantNumber;
  readonly stream: string;
  readonly revision: number;
  readonly message: string;
}

/** Where an event stands: all that a check keeps of one, so that its memory does not grow with what events hold. */
export interface Place {
  readonly stream: string;
  readonly revision: number;
}

export const placeOf = ({ stream, revision }: Place): Place => ({ stream, revision });

/** Says what is wrong, and at which event. */
export type Report = (invariant: InvariantNumber, at: Place, message: string) => void;

/** One invariant, fed with the log in order. */
export interface Check {
  take(recorded: Recorded<BerthEvent>): void;
  /** What only the end of the log can tell; `atRest`: nothing was under way when it was read. */
  finish(atRest: boolean): void;
}

import type { DecisionId, ModelKey, WorkerId } from '../ids.js';
import type { EventOf } from './envelope.js';

/** Stream `model-<modelKey>`: what concerns a model on every worker alike. */
export type ModelEvent = EventOf<
  'LoadClaimed',
  {
    readonly modelKey: ModelKey;
    /** Where it is loaded, by the decision that is appended to that worker's stream next. */
    readonly workerId: WorkerId;
    readonly decisionId: DecisionId;
  }
>;

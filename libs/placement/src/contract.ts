import type { CallHistory } from '#domain/calls/call-history.js';
import type { FoundModel } from '#domain/events/catalog-events.js';
import type {
  DecisionCause,
  PlacementDecidedData,
  PlacementRefusedData,
} from '#domain/events/worker-events.js';
import type { BerthError } from '#domain/errors.js';
import type { PairHistory } from '#domain/history/history.js';
import type { CallId, DecisionId, ModelKey, ResidentId } from '#domain/ids.js';
import type { Ask, Contract } from '#domain/placement-terms.js';
import type { WorkerState } from '#domain/worker/state.js';
import type { EffectiveSettings } from './settings.js';

/** What the api knows of a resident that is not in the log: facts of the moment. */
export interface ResidentActivity {
  readonly callsInFlight: number;
  readonly lastCallEndedAtMs?: number;
  /** Predicted remainder of the calls on it. */
  readonly freeInSeconds?: number;
  /** Another resident of its model is ready on another worker. */
  readonly alsoElsewhere?: true;
}

/** A call that waits for admission. */
export interface Ticket {
  readonly callId: CallId;
  readonly modelKey: ModelKey;
  readonly arrivedAtMs: number;
  /** Order of arrival among all tickets of this api, rising. */
  readonly arrival: number;
  readonly background: boolean;
  readonly group?: string;
  readonly promptTokens: number;
  readonly maxTokens?: number;
}

/** What a model's settings say of its residents: who may evict them, and when. */
export type ResidentPolicy = Pick<
  EffectiveSettings,
  'priority' | 'pinned' | 'minResidencySeconds' | 'idleEvictSeconds'
>;

/** How soon a model is wanted again, from 1 (now) to 0 (never). */
export type SoonnessOf = (key: ModelKey, nowMs: number) => number;

/** Everything that a decision is made from. Same input, same outcome. */
export interface PlacementInput {
  readonly worker: WorkerState;
  readonly model: FoundModel;
  /** Of this model on this worker. */
  readonly history: PairHistory;
  /** Of the other models on this worker: what reloading a victim would take. */
  readonly otherHistories: ReadonlyMap<ModelKey, PairHistory>;
  /** Recent calls of this model and of those that have residents. */
  readonly calls: ReadonlyMap<ModelKey, CallHistory>;
  readonly activity: ReadonlyMap<ResidentId, ResidentActivity>;
  /** Soonness of a model where a bench knows it: in the place of what its calls tell. Absent for every real decision. */
  readonly soonnessOf?: SoonnessOf;
  readonly settings: EffectiveSettings;
  /** Of the other models on this worker, where they differ from the defaults. */
  readonly residentPolicies?: ReadonlyMap<ModelKey, ResidentPolicy>;
  readonly ask: Ask;
  /** Eviction band that the call asked for itself, kept with the resident that it makes. */
  readonly callPriority?: number;
  readonly cause: DecisionCause;
  /** Absent for a decision that no call asked for. */
  readonly ticket?: Ticket;
  /** The queue in its order, the asker among it. */
  readonly queue: readonly Ticket[];
  /** Class keys for which the engine was asked and could not project: do not ask again. */
  readonly unprojectable: ReadonlySet<string>;
  readonly basedOn: readonly { readonly stream: string; readonly revision: number }[];
  readonly decisionId: DecisionId;
  readonly residentId: ResidentId;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

export type PlacementOutcome =
  /** A ready resident satisfies the ask. */
  | { readonly kind: 'reuse'; readonly residentId: ResidentId }
  /** A resident that satisfies the ask is planned or loading: wait for it. */
  | { readonly kind: 'join'; readonly residentId: ResidentId }
  /** Figures are wanted that an engine gives without loading; ask the worker, then decide again. */
  | {
      readonly kind: 'project';
      readonly wanted: readonly { readonly artifact: string; readonly contract: Contract }[];
    }
  /** Append this, expecting the worker's revision that it was decided from. */
  | { readonly kind: 'decided'; readonly data: PlacementDecidedData }
  /** It would fit if others ended, left or became idle: keep the ticket and decide again when something changes. */
  | {
      readonly kind: 'wait';
      readonly reason: string;
      readonly freeInSeconds?: number;
      readonly refusal: PlacementRefusedData;
    }
  /** Terminal for this call. */
  | { readonly kind: 'refused'; readonly data: PlacementRefusedData; readonly error: BerthError };

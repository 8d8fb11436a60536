import type { DecisionId, DeviceId, ModelKey, ResidentId, WorkerId } from '../ids.js';
import type { Ask, Contract, ModelKind, NeedTerm, Rung } from '../placement-terms.js';
import type {
  DeviceOnWorker,
  EngineOnWorker,
  EvictionReason,
  MeasuredMemory,
  MemoryBandwidth,
  PlacementDecidedData,
  WorkerEventData,
} from '../events/worker-events.js';

/**
 * A resident's life. `planned`: decided, not started. `evicting` is a mark beside the phase: a loading resident is
 * never evicted, a ready one may be.
 */
export type ResidentPhase = 'planned' | 'loading' | 'ready';

export interface Resident {
  readonly residentId: ResidentId;
  readonly decisionId: DecisionId;
  readonly modelKey: ModelKey;
  readonly artifact: string;
  readonly rung: Rung;
  readonly ask: Ask;
  readonly contract: Contract;
  readonly kind: ModelKind;
  /** What the plan said it takes: its launch budget until it is ready. */
  readonly need: readonly NeedTerm[];
  readonly phase: ResidentPhase;
  readonly port?: number;
  readonly pid?: number;
  readonly pidStartTicks?: number;
  readonly engine?: { readonly kind: string; readonly version: string; readonly build: string };
  readonly measured?: MeasuredMemory;
  readonly decidedAt: string;
  /** Processors that it was bound to after its load; absent: those of its contract. */
  readonly cores?: readonly number[];
  /** Eviction band that the call which had it loaded asked for; absent: the settings' own. */
  readonly priority?: number;
  readonly loadStartedAt?: string;
  readonly readyAt?: string;
  /** Set from the decision that names it a victim, or its eviction: no api sends calls there any more. */
  readonly leaving?: {
    readonly by?: DecisionId;
    readonly reason: EvictionReason;
    readonly started: boolean;
    /** Revision of the event that set it: tells one leaving from the next, so that an old acknowledgement counts for none. */
    readonly sinceRevision: number;
  };
}

export type DecisionState = 'open' | 'ready' | 'failed' | 'closed';

/** A decision that has not ended. Ended ones leave the state; the log keeps them. */
export interface OpenDecision {
  readonly decisionId: DecisionId;
  readonly residentId: ResidentId;
  readonly data: PlacementDecidedData;
  readonly revision: number;
  readonly eventId: string;
}

export interface WorkerLimits {
  /** Set at start (`--ram-max`); by device id, `cores` or `disk`. */
  readonly designation: ReadonlyMap<string, number>;
  /** Set by an admin; never above the designation. */
  readonly setting: ReadonlyMap<string, number>;
}

export interface WorkerState {
  readonly workerId: WorkerId;
  readonly registered: boolean;
  readonly name: string;
  readonly host: string;
  readonly dataAddress: string;
  readonly bootId: string;
  readonly engines: readonly EngineOnWorker[];
  readonly devices: readonly DeviceOnWorker[];
  readonly ramBytes?: number;
  readonly physicalCores: number;
  readonly swapBytes?: number;
  readonly cpuTopology?: WorkerEventData<'CapacityMeasured'>['cpuTopology'];
  readonly lastCacheBytes?: number;
  readonly drives?: WorkerEventData<'CapacityMeasured'>['drives'];
  readonly memoryBandwidth?: MemoryBandwidth;
  /** Processors on which other programs work for over half of the time; absent: none, or not known. */
  readonly busyCpus?: readonly number[];
  readonly limits: WorkerLimits;
  /** Foreign use by device, at the upper edge of its 128 MiB step; absent: no reading yet. */
  readonly foreign: ReadonlyMap<DeviceId, number>;
  /** Devices whose use was known and is not any more: since when, and what others used of them then. */
  readonly silent: ReadonlyMap<DeviceId, { readonly since: string; readonly foreignBytes?: number }>;
  readonly lost: boolean;
  readonly residents: ReadonlyMap<ResidentId, Resident>;
  readonly openDecisions: ReadonlyMap<DecisionId, OpenDecision>;
  readonly pins: ReadonlySet<ModelKey>;
  /** Revision of the last folded event; -1 for an empty stream. Decisions are appended expecting it. */
  readonly revision: number;
  /** Failures of plans, latest by plan key, so that the same plan is not tried again unless the room changed. */
  readonly failedPlans: ReadonlyMap<string, FailedPlan>;
  /** Ids of the last events folded, so that a fact appended twice is folded once. */
  readonly seen: readonly string[];
}

export interface FailedPlan {
  readonly modelKey: ModelKey;
  readonly artifact: string;
  readonly class: string;
  readonly message: string;
  readonly at: string;
  /** How many times in a row; the back-off is 30 · 2^(n-1) s, at most 600 s. */
  readonly times: number;
  readonly roomBytes: readonly { readonly deviceId: DeviceId; readonly bytes?: number }[];
}

import type { CallId, DecisionId, DeviceId, ModelKey, ResidentId } from '../ids.js';
import type {
  Ask,
  Contract,
  DeviceBytes,
  EngineKind,
  KvType,
  ModelKind,
  NeedTerm,
  Rung,
} from '../placement-terms.js';
import type { EventOf } from './envelope.js';

/** Stream `worker-<workerId>`: what the machine is, what was decided for it, what became of it. */

export interface EngineOnWorker {
  readonly kind: EngineKind;
  readonly version: string;
  readonly build: string;
  /** `chat`, `embedding`, `rerank`, `gpu`, `moe-split`, `tools`, `slots`, `vision`. */
  readonly capabilities: readonly string[];
}

export interface DeviceOnWorker {
  readonly deviceId: DeviceId;
  readonly kind: 'cuda' | 'rocm' | 'metal' | 'vulkan' | 'cpu';
  readonly name: string;
  readonly uuid?: string;
  readonly totalBytes: number;
  readonly driverReservedBytes?: number;
  readonly computeCapability?: string;
  /** Measured rate of its memory. */
  readonly memoryGBps?: number;
  /** A part of a card that is partitioned (MIG): the card's own id, and which part. */
  readonly partOf?: { readonly uuid: string; readonly profile: string };
  /** True when its memory is the host's (Apple, and processors with graphics): what it holds counts as RAM too. */
  readonly sharesRam?: boolean;
}

export interface DeviceRoom {
  readonly deviceId: DeviceId;
  /** Left out when a reading is missing: unknown room admits nothing. */
  readonly bytes?: number;
}

export interface Victim {
  readonly residentId: ResidentId;
  readonly modelKey: ModelKey;
  readonly lossSeconds: number;
  readonly frees: readonly { readonly deviceId: DeviceId; readonly bytes: number }[];
}

/** One candidate that was looked at, and what came of it. */
export interface Considered {
  readonly artifact: string;
  readonly rung: Rung;
  /** Accelerators that it would use; left out when it uses none. */
  readonly devices?: readonly DeviceId[];
  readonly contextTokens?: number;
  readonly kvType?: KvType;
  readonly outcome: 'chosen' | 'admitted' | 'refused' | 'not-offered';
  readonly reason: string;
  readonly needBytes?: number;
  readonly roomBytes?: number;
  readonly predictedSeconds?: number;
}

export type DecisionCause =
  | { readonly kind: 'call'; readonly callId: CallId }
  | { readonly kind: 'operator' | 'idle' | 'preload' }
  /** A resident is reloaded with a larger context, since a call wanted more than it has. */
  | { readonly kind: 'grow'; readonly fromTokens: number; readonly wantedTokens: number }
  /** The model is loaded to learn whether a context can be had. */
  | { readonly kind: 'probe'; readonly contextTokens: number };

/**
 * The facts of the moment that a decision was made from and that no other event tells: with them and the streams in
 * `basedOn` it can be made again from the log alone.
 */
export interface DecisionGiven {
  /** Knobs that differed from the built-in defaults, whoever set them. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The call that asked; left out where none did. */
  readonly call?: {
    readonly arrivedAt: string;
    /** The estimate that it was sized by. */
    readonly promptTokens: number;
    readonly maxTokens?: number;
    readonly background?: true;
  };
  /** Residents that had served or were serving, or whose model was ready on another worker too. */
  readonly activity: readonly {
    readonly residentId: ResidentId;
    readonly calls: number;
    readonly lastEndedAt?: string;
    readonly freeInSeconds?: number;
    readonly alsoElsewhere?: true;
  }[];
  /** Keys of the classes that the engine could not project. */
  readonly unprojectable?: readonly string[];
}

/** What a decision, a refusal and `berth explain` share. */
export interface Working {
  readonly cause: DecisionCause;
  readonly modelKey: ModelKey;
  readonly ask: Ask;
  readonly room: readonly DeviceRoom[];
  readonly considered: readonly Considered[];
  /** How many candidates were left out so that the event stays below 64 KiB. */
  readonly consideredLeftOut?: number;
  /** Residents that could not be victims, with the reason. */
  readonly blocking: readonly {
    readonly residentId: ResidentId;
    readonly modelKey: ModelKey;
    readonly reason: string;
  }[];
  readonly basedOn: readonly { readonly stream: string; readonly revision: number }[];
  readonly queue: readonly { readonly callId: CallId; readonly place: number }[];
  /** ISO time that the decision was taken with. */
  readonly now: string;
  readonly policy: { readonly goal: string; readonly order: string; readonly version: number };
  /** Left out by versions of Berth that did not keep it. */
  readonly given?: DecisionGiven;
}

export interface PlacementDecidedData extends Working {
  readonly decisionId: DecisionId;
  /** The resident that this decision will make. */
  readonly residentId: ResidentId;
  readonly artifact: string;
  readonly rung: Rung;
  readonly contract: Contract;
  readonly devices: readonly DeviceId[];
  readonly need: readonly NeedTerm[];
  readonly victims: readonly Victim[];
  /** True when the victims are the best possible set, false when chosen greedily. */
  readonly exact: boolean;
  /** Eviction band that the call asked for; left out when it asked for none, and the settings hold. */
  readonly priority?: number;
  readonly validUntil: string;
  /** Every slot of the model is taken elsewhere: the calls that wait for one, and how long the last of them would. */
  readonly forSlots?: { readonly waiting: number; readonly waitSeconds: number };
  readonly predicted: {
    readonly readyInSeconds?: number;
    readonly loadSeconds?: number;
    readonly outputSeconds?: number;
  };
}

export interface PlacementRefusedData extends Working {
  readonly decisionId: DecisionId;
  readonly code: string;
  readonly reason: string;
  /** How often the same refusal was given since the last one written. */
  readonly count: number;
}

/** A resident goes with nobody asking for its room: it was idle for longer than it may be. */
export interface UnloadDecidedData {
  readonly decisionId: DecisionId;
  readonly residentId: ResidentId;
  readonly modelKey: ModelKey;
  readonly idleSeconds: number;
  /** How long it may be idle, and who said so: the settings, or the last call on it. */
  readonly idleUnloadSeconds: number;
  readonly saidBy: 'settings' | 'call';
  readonly callId?: CallId;
  readonly frees: readonly { readonly deviceId: DeviceId; readonly bytes: number }[];
  readonly basedOn: readonly { readonly stream: string; readonly revision: number }[];
  readonly now: string;
}

export interface MeasuredMemory {
  readonly byDevice: readonly DeviceBytes[];
  /** Anonymous host memory of the process: what unloading frees for certain. */
  readonly hostAnonymousBytes: number;
  /** Resident host memory of the process, file pages included. */
  readonly hostResidentBytes: number;
  readonly contextTokens: number;
  readonly slots: number;
}

export const EVICTION_REASONS = ['room', 'idle', 'operator', 'contract', 'artifact', 'shutdown'] as const;
export type EvictionReason = (typeof EVICTION_REASONS)[number];

export const LOAD_FAILURE_CLASSES = [
  'out-of-memory',
  'bad-artifact',
  'incompatible-engine',
  'stalled',
  'exited',
  'cancelled',
] as const;
export type LoadFailureClass = (typeof LOAD_FAILURE_CLASSES)[number];

export const CLOSE_REASONS = ['expired', 'cancelled', 'superseded', 'agent-refused'] as const;
export type CloseReason = (typeof CLOSE_REASONS)[number];

/** Read rate of host memory, in units of 10^9 bytes a second. */
export interface MemoryBandwidth {
  readonly allGBps: number;
  readonly oneCoreGBps: number;
  /** At 1, 2, 3 … cores, never falling; left out by versions that did not measure it. */
  readonly byCoresGBps?: readonly number[];
}

export type WorkerEvent =
  | EventOf<
      'WorkerRegistered',
      {
        readonly name: string;
        readonly host: string;
        readonly agentVersion: string;
        readonly os: string;
        readonly engines: readonly EngineOnWorker[];
        /** Where engines of this worker are reached; loopback when the api is on the same machine. */
        readonly dataAddress: string;
        readonly bootId: string;
      }
    >
  | EventOf<
      'CapacityMeasured',
      {
        readonly devices: readonly DeviceOnWorker[];
        readonly ramBytes: number;
        readonly swapBytes: number;
        readonly physicalCores: number;
        readonly cpuTopology?: readonly {
          readonly cpu: number;
          readonly core: number;
          /** NUMA node. */
          readonly node: number;
        }[];
        /** Of the cache nearest to memory; a measurement of memory must not fit into it. */
        readonly lastCacheBytes?: number;
        readonly memoryBandwidth?: MemoryBandwidth;
        /** The drive of Berth's own folder of models comes first. */
        readonly drives: readonly {
          readonly mount: string;
          readonly totalBytes: number;
          readonly freeBytes: number;
        }[];
      }
    >
  | EventOf<
      'LimitSet',
      {
        /** A device id (`ram` among them), `cores`, or `disk`: what models take in Berth's own folder. */
        readonly resource: string;
        readonly tier: 'designation' | 'setting';
        /** Bytes, or a count for cores; null takes the limit away. */
        readonly value: number | null;
        readonly by: string;
      }
    >
  | EventOf<
      'ForeignUseChanged',
      {
        readonly deviceId: DeviceId;
        /** The upper edge of the 128 MiB step that the use lies in; absent when the driver does not tell any more. */
        readonly bytes?: number;
        readonly processes: readonly {
          readonly pid: number;
          readonly name: string;
          readonly bytes: number;
        }[];
      }
    >
  | EventOf<
      'BusyCoresChanged',
      {
        /** Processors on which other programs worked for over half of the last seconds; empty when there are none. */
        readonly cpus: readonly number[];
      }
    >
  | EventOf<'WorkerLost', { readonly lastSeenAt: string }>
  | EventOf<'WorkerReturned', { readonly bootId: string }>
  | EventOf<'PlacementDecided', PlacementDecidedData>
  | EventOf<'PlacementRefused', PlacementRefusedData>
  | EventOf<'UnloadDecided', UnloadDecidedData>
  | EventOf<
      'DecisionClosed',
      {
        readonly decisionId: DecisionId;
        readonly why: CloseReason;
        readonly reason: string;
        readonly roomRead?: readonly DeviceRoom[];
      }
    >
  | EventOf<'PinSet', { readonly modelKey: ModelKey; readonly pinned: boolean; readonly by: string }>
  | EventOf<
      'EvictionStarted',
      { readonly residentId: ResidentId; readonly decisionId?: DecisionId; readonly reason: EvictionReason }
    >
  | EventOf<
      'ResidentEvicted',
      {
        readonly residentId: ResidentId;
        readonly decisionId?: DecisionId;
        readonly reason: EvictionReason;
        readonly freed: readonly { readonly deviceId: DeviceId; readonly bytes: number }[];
        readonly seconds: number;
      }
    >
  | EventOf<
      'EvictionFailed',
      {
        readonly residentId: ResidentId;
        readonly decisionId?: DecisionId;
        readonly reason: EvictionReason;
        readonly why: 'busy' | 'would-not-stop';
        readonly message: string;
      }
    >
  | EventOf<
      'LoadStarted',
      {
        readonly residentId: ResidentId;
        readonly decisionId: DecisionId;
        readonly modelKey: ModelKey;
        readonly artifact: string;
        readonly engine: { readonly kind: EngineKind; readonly version: string; readonly build: string };
        readonly arguments: readonly string[];
        readonly port: number;
        readonly cores?: readonly number[];
        readonly pid: number;
        /** Start time of the process in clock ticks since boot: tells a reused pid from the engine. */
        readonly pidStartTicks?: number;
      }
    >
  | EventOf<
      /** The process of a load gave way to another, before it served: the load goes on as one. */
      'LoadRestarted',
      {
        readonly residentId: ResidentId;
        readonly port: number;
        readonly pid: number;
        readonly pidStartTicks?: number;
        /** Another program took the port of the process before. */
        readonly cause: 'port-taken';
      }
    >
  | EventOf<
      'ResidentReady',
      {
        readonly residentId: ResidentId;
        readonly stagedAt: string;
        readonly loadedAt: string;
        readonly measured: MeasuredMemory;
        readonly computesOn: readonly DeviceId[];
        readonly kind: ModelKind;
      }
    >
  | EventOf<
      'LoadFailed',
      {
        readonly residentId: ResidentId;
        readonly class: LoadFailureClass;
        readonly message: string;
        /** At most 4 KiB, only lines of known load-time shapes. */
        readonly logTail: string;
        readonly seconds: number;
      }
    >
  | EventOf<
      'ResidentCrashed',
      {
        readonly residentId: ResidentId;
        readonly exitCode?: number;
        readonly signal?: string;
        readonly during: 'loading' | 'idle' | 'call' | 'unknown';
        /** It stood still, answering nothing for so long, and was stopped for it. */
        readonly unansweredSeconds?: number;
        readonly logTail: string;
      }
    >
  | EventOf<
      'ResidentAdopted',
      {
        readonly residentId: ResidentId;
        readonly pid: number;
        /** As measured anew by the agent that adopts it; absent while it loads, or when it does not say. */
        readonly measured?: MeasuredMemory;
      }
    >
  | EventOf<'ResidentFoundGone', { readonly residentId: ResidentId; readonly pid: number }>
  | EventOf<
      /** What it holds beside what was told when it was ready: what its process takes, which a driver tells later. */
      'ResidentRemeasured',
      { readonly residentId: ResidentId; readonly measured: MeasuredMemory }
    >
  | EventOf<
      'ContextGrown',
      { readonly residentId: ResidentId; readonly from: number; readonly to: number; readonly cause: string }
    >
  | EventOf<
      'CoresRepinned',
      {
        readonly residentId: ResidentId;
        readonly from: readonly number[];
        readonly to: readonly number[];
        readonly cause: string;
        /** Left out by what is no decision of an api. */
        readonly decisionId?: DecisionId;
      }
    >;

export type WorkerEventType = WorkerEvent['type'];
export type WorkerEventData<T extends WorkerEventType> = Extract<WorkerEvent, { type: T }>['data'];

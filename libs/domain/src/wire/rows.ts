import type { CallOutcome } from '../events/call-events.js';
import type { ModelKind, Rung } from '../placement-terms.js';

/** One page of a list; `next` is the `after` of the page behind it, and absent on the last. */
export interface WirePage<T> {
  readonly items: readonly T[];
  readonly next?: string;
}

/** RFC 9457, as every refusal of the management API is. */
export interface WireProblem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  /** The sentence to show, with its figures and the next step. */
  readonly detail: string;
  readonly instance: string;
  readonly code: string;
  readonly param?: string;
  readonly retryAfterSeconds?: number;
}

/** Where a command's event stands: `?wait=<position>` on a read waits until the views have it. */
export interface WireWritten {
  readonly position?: string;
  readonly revision?: number;
}

export interface WireDeviceBytes {
  /** `ram`, or the accelerator's stable id. */
  readonly deviceId: string;
  readonly bytes: number;
}

/** One device of one worker: what there is, what may be used, who uses it. */
export interface DeviceItem {
  readonly workerId: string;
  readonly workerName: string;
  /** The worker's agent was given up: what it has serves nobody. */
  readonly workerLost: boolean;
  readonly deviceId: string;
  readonly kind?: string;
  readonly name?: string;
  readonly totalBytes?: number;
  /** What Berth may use at most; left out where nothing but the device limits it. */
  readonly limitBytes?: number;
  /** Held back by the driver. */
  readonly reservedBytes?: number;
  /** What other programs use, at the upper edge of its 128 MiB step; left out before the first reading. */
  readonly foreignBytes?: number;
  /** What residents hold, as measured, or as planned while they load. */
  readonly residentBytes: number;
}

export interface ResidentItem {
  readonly residentId: string;
  readonly workerId: string;
  readonly workerName?: string;
  readonly modelKey?: string;
  readonly artifact?: string;
  readonly rung?: Rung;
  readonly kind?: ModelKind;
  /** One that has `ended` is told once more, and is in no snapshot after it. */
  readonly phase: 'planned' | 'loading' | 'ready' | 'ended';
  /** While it is asked to leave. */
  readonly leaving?: { readonly reason: string; readonly decisionId?: string; readonly started: boolean };
  readonly engine?: { readonly kind: string; readonly version?: string; readonly build?: string };
  readonly contextTokens?: number;
  readonly slots?: number;
  readonly kvType?: string;
  readonly memory: readonly (WireDeviceBytes & { readonly basis: 'measured' | 'planned' })[];
  readonly hostAnonymousBytes?: number;
  readonly hostResidentBytes?: number;
  readonly computesOn?: readonly string[];
  readonly cores?: readonly number[];
  readonly port?: number;
  readonly pid?: number;
  readonly decisionId?: string;
  readonly decidedAt?: string;
  readonly loadStartedAt?: string;
  readonly readyAt?: string;
  readonly lastCallAt?: string;
  readonly endedAt?: string;
  /** evicted, crashed, load-failed, found-gone, closed */
  readonly endReason?: string;
  readonly endDetail?: unknown;
}

export interface CallItem {
  readonly callId: string;
  readonly modelKey: string;
  readonly workerId?: string;
  readonly apiId?: string;
  readonly endpoint?: string;
  readonly receivedAt: string;
  readonly state: CallOutcome | 'running';
  readonly status?: number;
  readonly code?: string;
  readonly stream?: boolean;
  readonly background?: boolean;
  readonly intent?: string;
  readonly keyId?: string;
  /** HMAC of the session's name. */
  readonly group?: string;
  readonly residentId?: string;
  readonly decisionId?: string;
  readonly artifact?: string;
  readonly attempts?: number;
  readonly promptBytes?: number;
  readonly maxTokens?: number;
  readonly bytesOut?: number;
  readonly tokens: {
    readonly prompt?: number;
    readonly cached?: number;
    readonly output?: number;
    readonly reasoning?: number;
  };
  readonly timings: {
    readonly promptMs?: number;
    readonly decodeMs?: number;
    readonly cpuMs?: number;
    readonly tokensPerSecond?: number;
    readonly waitedSeconds?: number;
    readonly firstByteSeconds?: number;
    readonly totalSeconds?: number;
  };
  readonly stamps: {
    readonly receivedAt?: string;
    readonly queuedAt?: string;
    readonly decidedAt?: string;
    readonly readyAt?: string;
    readonly forwardedAt?: string;
    readonly firstByteAt?: string;
    readonly finishedAt?: string;
  };
  readonly queue?: unknown;
}

export interface DecisionItem {
  readonly decisionId: string;
  readonly eventId: string;
  readonly workerId: string;
  readonly admitted: boolean;
  /** call, operator, grow, probe, idle, preload */
  readonly cause: string;
  readonly callId?: string;
  readonly modelKey: string;
  readonly artifact?: string;
  readonly rung?: string;
  readonly residentId?: string;
  readonly contextTokens?: number;
  readonly slots?: number;
  readonly kvType?: string;
  readonly needBytes?: number;
  /** Residents that it evicts. */
  readonly victims: readonly string[];
  readonly state: 'open' | 'ready' | 'failed' | 'closed' | 'refused';
  readonly code?: string;
  readonly reason?: string;
  /** How often the same refusal was given. */
  readonly refusals?: number;
  readonly failureClass?: string;
  readonly predicted: {
    readonly readySeconds?: number;
    readonly loadSeconds?: number;
    readonly outputSeconds?: number;
  };
  readonly actual: { readonly readySeconds?: number; readonly loadSeconds?: number };
  readonly decidedAt: string;
  readonly validUntil?: string;
  readonly endedAt?: string;
  readonly endedByEvent?: string;
}

export interface EvictionItem {
  readonly evictionId: string;
  readonly residentId: string;
  readonly workerId: string;
  readonly decisionId?: string;
  readonly modelKey?: string;
  readonly reason: string;
  readonly state: 'running' | 'done' | 'failed' | 'overtaken';
  readonly freed?: readonly WireDeviceBytes[];
  readonly freedBytes?: number;
  readonly seconds?: number;
  readonly failure?: string;
  readonly message?: string;
  readonly startedAt?: string;
  readonly endedAt?: string;
}

export interface PullItem {
  readonly pullId: string;
  readonly workerId: string;
  readonly source?: string;
  readonly by?: string;
  readonly state: 'running' | 'finished' | 'refused' | 'failed';
  readonly reason?: string;
  readonly files: readonly {
    readonly file: string;
    readonly bytes: number;
    readonly seconds: number;
    readonly resumedFromBytes: number;
    readonly sha256?: string;
  }[];
  readonly pulledBytes: number;
  readonly requestedAt?: string;
  readonly endedAt?: string;
}

/** A call that waits now: its place, what was predicted when it came, and why it waits. */
export interface QueueItem {
  readonly callId: string;
  readonly place: number;
  readonly modelKey: string;
  readonly phase: string;
  readonly why: string;
  readonly background: boolean;
  readonly promptTokens: number;
  readonly maxTokens?: number;
  readonly receivedAt: string;
  readonly waitedSeconds: number;
  readonly maxWaitSeconds: number;
  /** Room is expected in about so long. */
  readonly freeInSeconds?: number;
  /** The load that it waits for. */
  readonly loading?: {
    readonly residentId: string;
    readonly workerId: string;
    readonly phase?: string;
    /** 0 to 1. */
    readonly fraction?: number;
    readonly elapsedSeconds?: number;
  };
  /** As it stood when it came into the queue. */
  readonly predicted?: {
    readonly position: number;
    readonly kind: string;
    readonly why: string;
    readonly predictedReadySeconds?: number;
    readonly predictedLoadSeconds?: number;
    readonly predictedOutputSeconds?: number;
  };
}

import type { Basis, KvType, Rung } from '../placement-terms.js';
import type { DeviceItem, ResidentItem, WireDeviceBytes } from './rows.js';

/** `GET /admin/usage?by=model|key|hour|day…`: finished calls, summed. Groups that were not asked for are left out. */
export interface UsageItem {
  /** Start of the hour or the day (UTC), as ISO time. */
  readonly time?: string;
  readonly modelKey?: string;
  /** Empty: called without a key. */
  readonly keyId?: string;
  readonly keyName?: string;
  readonly calls: number;
  readonly completed: number;
  readonly failed: number;
  readonly abandoned: number;
  readonly refused: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly promptMs: number;
  readonly decodeMs: number;
  /** From received to forwarded. */
  readonly waitedMs: number;
  readonly bytesOut: number;
}

/** `GET /admin/daily`: one row per day, newest first. */
export interface DailyItem {
  readonly day: string;
  readonly calls: number;
  readonly completed: number;
  readonly failed: number;
  readonly abandoned: number;
  readonly refused: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly waitedMs: number;
  readonly loads: number;
  readonly loadSeconds: number;
  readonly failedLoads: number;
  readonly evictions: number;
  readonly decisions: number;
  readonly refusals: number;
}

/** Berth's own folder of models on one worker, where a pull writes. */
export interface ModelFolder {
  readonly workerId: string;
  readonly workerName?: string;
  /** Files of its models as they are listed; a pull counts the folder itself once more before it begins. */
  readonly usedBytes: number;
  /** Of what models may take in it, and who set that: the start (`designation`) or an admin (`setting`). */
  readonly limitBytes?: number;
  readonly limitTier?: 'designation' | 'setting';
  /** Of its drive, as it was when its agent measured it. */
  readonly driveBytes?: number;
  readonly freeBytes?: number;
  readonly measuredAt?: string;
  /** What a pull may bring: the least that the limit and the drive leave; of the drive 256 MiB are kept free. */
  readonly roomBytes?: number;
}

/** `GET /admin/storage`. */
export interface StorageReport {
  readonly drives: readonly {
    readonly workerId: string;
    readonly mount: string;
    readonly totalBytes: number;
    readonly freeBytes: number;
    readonly measuredAt: string;
  }[];
  /** By worker. */
  readonly folders: readonly ModelFolder[];
  /** What artifacts take on disk, largest first. */
  readonly artifacts: readonly {
    readonly workerId: string;
    readonly modelKey: string;
    readonly artifact: string;
    readonly root: string;
    readonly path: string;
    readonly bytes: number;
    readonly complete: boolean;
    readonly broken?: string;
  }[];
  readonly totalBytes: number;
}

/** One way to place a model on a worker, as it stands now. `GET /admin/models/KEY/verdicts`. */
export interface VerdictItem {
  readonly workerId: string;
  readonly workerName?: string;
  readonly modelKey: string;
  readonly artifact: string;
  readonly rung: Rung;
  readonly kvType: KvType;
  /** `evicting`: once the named residents are gone. `never`: not within the limits, or not offered at all. */
  readonly fits: 'now' | 'evicting' | 'never' | 'unknown';
  /** A sentence with figures. */
  readonly reason: string;
  readonly contextTokens?: number;
  /** What the context is known from, and the most that would fit. */
  readonly context?: { readonly state: string; readonly ceilingTokens?: number };
  /** What it takes on each device, with the weakest basis of its terms. */
  readonly need: readonly (WireDeviceBytes & { readonly basis: Basis })[];
  readonly room: readonly { readonly deviceId: string; readonly bytes?: number }[];
  readonly evicting: readonly { readonly residentId: string; readonly modelKey: string }[];
  readonly cores?: number;
  readonly predicted: {
    readonly loadSeconds?: number;
    readonly outputTokensPerSecond?: number;
    readonly promptTokensPerSecond?: number;
  };
}

/** `GET /admin/cores`. */
export interface CoresItem {
  readonly workerId: string;
  readonly workerName: string;
  readonly physicalCores: number;
  readonly limitCores?: number;
  readonly residents: readonly {
    readonly residentId: string;
    readonly modelKey: string;
    readonly phase: string;
    readonly threads: number;
    /** CPU numbers that it is bound to. */
    readonly cores?: readonly number[];
  }[];
}

/** `GET /admin/state?at=POSITION|TIME`: what stood then, folded from the log. */
export interface StateAt {
  /** Of the last event that counted; absent before the first. */
  readonly position?: string;
  /** When that event was written. */
  readonly at?: string;
  readonly devices: readonly DeviceItem[];
  readonly residents: readonly ResidentItem[];
  /** By the decisions that were open then. */
  readonly openDecisions: readonly { readonly decisionId: string; readonly modelKey: string }[];
}

/** How a call came to its model. */
export type Situation =
  /** It has no end yet. */
  | 'running'
  /** The decision was taken for it. */
  | 'placed'
  /** It waited for a load that another cause had begun. */
  | 'joined'
  /** The model was resident: no decision was needed. */
  | 'reused'
  /** The decision was to refuse it. */
  | 'refused'
  /** It ended before anything was decided for it. */
  | 'undecided';

/** A predicted figure beside what happened, each with the event it stands in. */
export interface Comparison {
  readonly what: string;
  readonly unit: 'seconds' | 'bytes';
  readonly predicted?: number;
  readonly predictedBy?: string;
  readonly actual?: number;
  readonly actualBy?: string;
}

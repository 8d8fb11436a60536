/** What the readers use of the admin API's answers; everything else in them is passed on with --json. */

export interface Health {
  readonly status: string;
  readonly version?: string;
  readonly degraded?: readonly string[];
  readonly workers?: readonly { readonly id: string; readonly name: string; readonly connected: boolean }[];
}

export interface DeviceBytes {
  readonly deviceId: string;
  readonly bytes: number;
}

export interface WorkerRow {
  readonly workerId: string;
  readonly name?: string;
  readonly lost: boolean;
  readonly physicalCores?: number;
  readonly coresLimit?: number;
  readonly devices: readonly DeviceRow[];
}

/** Berth's own folder of models on a worker. */
export interface FolderRow {
  readonly workerId: string;
  readonly usedBytes: number;
  readonly limitBytes?: number;
  readonly limitTier?: string;
  readonly freeBytes?: number;
  readonly roomBytes?: number;
}

export interface DeviceRow {
  /** `ram`, or the accelerator's stable id. */
  readonly deviceId: string;
  readonly name?: string;
  readonly totalBytes?: number;
  readonly limitBytes?: number;
  /** What our residents hold, as measured, or as planned while they load. */
  readonly residentBytes: number;
  /** Left out before the first reading. */
  readonly foreignBytes?: number;
}

export interface ResidentRow {
  readonly residentId: string;
  readonly workerId: string;
  readonly workerName?: string;
  readonly modelKey?: string;
  readonly artifact?: string;
  readonly phase: string;
  readonly leaving?: { readonly reason: string };
  readonly contextTokens?: number;
  readonly slots?: number;
  readonly memory: readonly (DeviceBytes & { readonly basis: 'measured' | 'planned' })[];
  readonly readyAt?: string;
}

export interface ModelRow {
  readonly workerId: string;
  readonly modelKey: string;
  readonly kind: string;
  readonly smoke: boolean;
  readonly artifacts: readonly {
    readonly label: string;
    readonly bytes: number;
    readonly complete?: boolean;
    readonly missing?: readonly string[];
    readonly format?: string;
    readonly broken?: string;
    readonly trainedContextTokens?: number;
  }[];
  readonly abilities?: readonly string[];
  readonly trainedContextTokens?: number;
  readonly attachments?: readonly {
    readonly role: string;
    readonly label: string;
    readonly bytes: number;
    readonly broken?: string;
  }[];
  readonly marker?: {
    readonly corrections?: readonly {
      readonly fact: string;
      readonly said: string;
      readonly found: string;
      readonly reason: string;
    }[];
  } | null;
  readonly residents: readonly { readonly phase: string; readonly contextTokens?: number }[];
}

export interface AccuracyRow {
  readonly workerId: string;
  readonly modelKey: string;
  readonly artifact?: string;
  readonly classKey: string;
  readonly engineBuild?: string;
  readonly loads: number;
  /** Parts of what was measured. */
  readonly meanError: number;
  readonly worstError: number;
  readonly mostAboveBytes: number;
  readonly mostBelowBytes: number;
}

export interface CallRow {
  readonly callId: string;
  readonly modelKey: string;
  readonly receivedAt: string;
}

export interface QueueRow {
  readonly callId: string;
  readonly modelKey: string;
  readonly phase: string;
  readonly waitedSeconds: number;
}

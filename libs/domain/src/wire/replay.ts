/** Body of `POST /admin/replay`. */
export interface ReplayRequest {
  /** `verify` (when left out): fold beside the live views and compare; `rebuild`: fold anew and swap. */
  readonly mode?: ReplayMode;
}

export type ReplayMode = 'verify' | 'rebuild';
export type ReplayStep = 'fold' | 'index' | 'swap' | 'compare';

/** How far a replay is, and how fast. */
export interface ReplayProgress {
  readonly events: number;
  /** Of the log, by its bytes: 0 to 1. */
  readonly share: number;
  readonly perSecond: number;
  readonly leftSeconds?: number;
}

/** A row of the live views that is not what the log gives. */
export interface ReplayDifference {
  readonly table: string;
  /** By the table's key columns. */
  readonly key: Readonly<Record<string, unknown>>;
  /** `missing`: the log gives the row and the live views lack it; `surplus`: the other way round. */
  readonly kind: 'missing' | 'surplus' | 'changed';
  /** The columns that differ, of a changed row. */
  readonly columns?: readonly { readonly column: string; readonly live: unknown; readonly folded: unknown }[];
}

/** The lines that `berth replay --json` prints, each an object with one of these. */
export interface ReplayLine extends Partial<ReplayProgress> {
  readonly step?: ReplayStep;
  readonly progress?: ReplayProgress;
  readonly difference?: ReplayDifference;
  readonly verified?: {
    readonly events: number;
    readonly rows: number;
    readonly differences: number;
    readonly position: string;
  };
  readonly replayed?: { readonly events: number; readonly setAside: number; readonly position: string };
}

/** `GET /admin/replay/ID`, and the items of `GET /admin/replay` (which leave the differences out). */
export interface ReplayItem {
  readonly id: string;
  readonly mode: ReplayMode;
  readonly state: 'running' | 'done' | 'failed';
  readonly startedAt: string;
  readonly endedAt?: string;
  /** What is under way. */
  readonly step?: ReplayStep;
  readonly progress: ReplayProgress;
  /** Rows that were compared. */
  readonly rows?: number;
  /** Events that fit no view, of a rebuild. */
  readonly setAside?: number;
  /** Where in the log both stood. */
  readonly position?: string;
  readonly differencesFound: number;
  /** The first ones; what is more is counted above. */
  readonly differences?: readonly ReplayDifference[];
  /** A sentence: why it failed. */
  readonly error?: string;
}

/** Body of `POST /admin/what-if`: the logged calls of a time under something else. Nothing else named: as it was. */
export interface WhatIfRequest {
  /** ISO times; the last 24 hours when left out. */
  readonly from?: string;
  readonly to?: string;
  readonly ramMaxBytes?: number;
  readonly vramMaxBytes?: number;
  /** Cards by id or by a part of their name; one that no worker has is put beside the others. */
  readonly devices?: readonly { readonly name: string; readonly bytes: number }[];
  /** Workers more, each a copy of the first. */
  readonly moreWorkers?: number;
  /** Placement settings, laid over what was set at every level. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** False: the least loading possible is not computed, which takes longest. */
  readonly bound?: boolean;
}

/** `GET /admin/what-if/ID`, and the items of `GET /admin/what-if` (which leave the report out). */
export interface WhatIfItem {
  readonly id: string;
  readonly state: 'running' | 'done' | 'failed';
  readonly startedAt: string;
  readonly request: WhatIfRequest;
  /** What is under way, and how much of it is done (0 to 1, where that is known). */
  readonly step?: string;
  readonly fraction?: number;
  /** A sentence: why it failed. */
  readonly error?: string;
  readonly report?: WhatIfReport;
}

/** What a stretch of time came to, really or simulated. Latencies are of served calls: never read one without `refused`. */
export interface WhatIfFigures {
  readonly calls: number;
  readonly served: number;
  readonly refused: number;
  /** Arrival to the end of the output. */
  readonly toOutputSeconds: WhatIfSpread;
  /** Arrival to the first byte. */
  readonly toFirstByteSeconds: WhatIfSpread;
  readonly longestWaitSeconds: number;
  readonly loads: number;
  readonly failedLoads: number;
  readonly loadSeconds: number;
  /** The same loads at what a load of each model usually takes: as the bound counts them. */
  readonly usualLoadSeconds: number;
  readonly evictions: number;
}

export interface WhatIfSpread {
  readonly mean: number;
  readonly p50: number;
  readonly p99: number;
}

/** A decision that the same code on the same facts makes otherwise. */
export interface WhatIfDifference {
  readonly decisionId: string;
  readonly at: string;
  readonly workerId: string;
  readonly modelKey: string;
  readonly fields: readonly { readonly field: string; readonly logged: string; readonly again: string }[];
  readonly reason: string;
}

/** Load seconds that no policy could have spared, or why they were not computed. */
export interface WhatIfLeast {
  /** When every call is served as it comes. */
  readonly atOnceSeconds?: number;
  /** When a call may wait `delaySeconds`. */
  readonly delayedSeconds?: number;
  readonly delaySeconds: number;
  readonly notComputed?: string;
  /** What the loads usually take ÷ the least; left out where it is not known, or nothing had to be loaded. */
  readonly ratio?: number;
}

export interface WhatIfReport {
  readonly from: string;
  readonly to: string;
  readonly calls: number;
  /** Calls that no placement would have changed. */
  readonly leftOut: number;
  readonly reproduced: {
    readonly decisions: number;
    readonly identical: number;
    /** The first of them. */
    readonly differences: readonly WhatIfDifference[];
  };
  readonly really: WhatIfFigures;
  /** The same calls on the same hardware, simulated: what a simulated change is to be held against. */
  readonly asItWas: WhatIfFigures;
  /** `loadsSaved`: the share of the loads of `asItWas`. */
  readonly changes: readonly {
    readonly name: string;
    readonly figures: WhatIfFigures;
    readonly loadsSaved: number;
  }[];
  readonly least: WhatIfLeast;
  /** What it comes to, for a person. */
  readonly sentence: string;
  /** What was assumed. */
  readonly notes: readonly string[];
}

/** `GET /admin/what-if/nightly`: what a night's summary kept of the report. */
export interface WhatIfNight extends Pick<
  WhatIfReport,
  'from' | 'to' | 'calls' | 'leftOut' | 'really' | 'asItWas' | 'changes' | 'least' | 'sentence'
> {
  /** The local date of the night that ended it: `2026-01-05`. */
  readonly day: string;
  /** Decisions that were made again, and how many came out the same. */
  readonly decisions: number;
  readonly identical: number;
}

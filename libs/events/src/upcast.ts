import type { BerthEventType } from '#domain/events/index.js';

/** The version that is written today, per type. A type that is not here is not Berth's. */
export const CURRENT_VERSIONS = {
  WorkerRegistered: 1,
  CapacityMeasured: 1,
  LimitSet: 1,
  ForeignUseChanged: 1,
  BusyCoresChanged: 1,
  WorkerLost: 1,
  WorkerReturned: 1,
  PlacementDecided: 1,
  PlacementRefused: 1,
  UnloadDecided: 1,
  DecisionClosed: 1,
  PinSet: 1,
  EvictionStarted: 1,
  ResidentEvicted: 1,
  EvictionFailed: 1,
  LoadStarted: 1,
  LoadRestarted: 1,
  ResidentReady: 1,
  LoadFailed: 1,
  ResidentCrashed: 1,
  ResidentAdopted: 1,
  ResidentRemeasured: 1,
  ResidentFoundGone: 1,
  ContextGrown: 1,
  CoresRepinned: 1,
  CallStarted: 1,
  CallFinished: 1,
  LoadProjected: 1,
  LoadMeasured: 1,
  LoadRefusedByEngine: 1,
  ServingMeasured: 1,
  ContextProbed: 1,
  ModelFound: 1,
  ModelChanged: 1,
  ModelGone: 1,
  WeightsHashed: 1,
  LoadClaimed: 1,
  ApiStarted: 1,
  ApiStopped: 1,
  ApiLost: 1,
  WhatIfSummarised: 1,
  LogCreated: 1,
  SettingsChanged: 1,
  KeyIssued: 1,
  KeyRevoked: 1,
  OperatorActionRequested: 1,
  OperatorActionStarted: 1,
  OperatorActionFinished: 1,
  PullRequested: 1,
  FilePulled: 1,
  PullFinished: 1,
  PullRefused: 1,
  PullFailed: 1,
  DevicesRead: 1,
} as const satisfies Record<BerthEventType, number>;

export type JsonObject = Readonly<Record<string, unknown>>;
/** From one version of a type to the next; pure, and total over everything that version ever wrote. */
export type Upcaster = (data: JsonObject) => JsonObject;

export interface Versions {
  readonly current: Readonly<Record<string, number>>;
  /** Per type: the step at index n leads from version n + 1 to n + 2. */
  readonly steps: Readonly<Record<string, readonly Upcaster[]>>;
}

/**
 * The one place where old events are read as new ones. A change that an old reader would misread raises the number
 * above, adds a step here, and keeps the fixture of the old version beside that of the new one.
 */
export const VERSIONS: Versions = { current: CURRENT_VERSIONS, steps: {} };

export type Upcast =
  | { readonly ok: true; readonly data: JsonObject }
  | { readonly ok: false; readonly why: 'unknown-type' | 'newer-version' | 'no-step' };

/** Brings the data of `type` from the version that it was written in to today's. */
export function upcast(type: string, version: number, data: JsonObject, versions = VERSIONS): Upcast {
  const current = Object.hasOwn(versions.current, type) ? versions.current[type] : undefined;
  if (current === undefined) return { ok: false, why: 'unknown-type' };
  if (version > current) return { ok: false, why: 'newer-version' };
  let result = data;
  for (let from = version; from < current; from++) {
    const step = versions.steps[type]?.[from - 1];
    if (!step) return { ok: false, why: 'no-step' };
    result = step(result);
  }
  return { ok: true, data: result };
}

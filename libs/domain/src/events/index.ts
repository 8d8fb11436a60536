import type { CallEvent } from './call-events.js';
import type { CatalogEvent } from './catalog-events.js';
import type { FleetEvent, IdentityEvent } from './fleet-events.js';
import type { HistoryEvent } from './history-events.js';
import type { ModelEvent } from './model-events.js';
import type { KeyEvent, OperatorEvent, PullEvent, SettingsEvent } from './other-events.js';
import type { ReadingsEvent } from './readings-events.js';
import type { WhatIfEvent } from './what-if-events.js';
import type { WorkerEvent } from './worker-events.js';

export * from './call-events.js';
export * from './catalog-events.js';
export * from './envelope.js';
export * from './fleet-events.js';
export * from './history-events.js';
export * from './limits.js';
export * from './model-events.js';
export * from './other-events.js';
export * from './readings-events.js';
export * from './what-if-events.js';
export * from './worker-events.js';

/** Every event that Berth writes. Type names are unique over all streams: a public contract. */
export type BerthEvent =
  | WorkerEvent
  | CallEvent
  | HistoryEvent
  | CatalogEvent
  | ModelEvent
  | FleetEvent
  | WhatIfEvent
  | IdentityEvent
  | SettingsEvent
  | KeyEvent
  | OperatorEvent
  | PullEvent
  | ReadingsEvent;
export type BerthEventType = BerthEvent['type'];
export type DataOf<T extends BerthEventType> = Extract<BerthEvent, { type: T }>['data'];

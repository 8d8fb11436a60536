import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { Views } from '../rows/views.js';
import { callHandlers } from './call-handlers.js';
import { catalogHandlers } from './catalog-handlers.js';
import { decisionHandlers } from './decision-handlers.js';
import { evictionHandlers } from './eviction-handlers.js';
import { fleetHandlers } from './fleet-handlers.js';
import { type Handler, type Handlers, positionOf } from './handler.js';
import { historyHandlers } from './history-handlers.js';
import { residentHandlers } from './resident-handlers.js';
import { workerHandlers } from './worker-handlers.js';

export const handlers: Handlers = {
  ...workerHandlers,
  ...decisionHandlers,
  ...residentHandlers,
  ...evictionHandlers,
  ...callHandlers,
  ...catalogHandlers,
  ...historyHandlers,
  ...fleetHandlers,
};

/** Streams that the views are folded from. */
export const PREFIXES = ['worker-', 'calls-', 'history-', 'catalog-', 'fleet-'] as const;

/** The map is typed by event type, which a lookup by a value of the union cannot show. */
const handlerOf = (recorded: Recorded<BerthEvent>): Handler<BerthEvent['type']> | undefined =>
  handlers[recorded.event.type] as Handler<BerthEvent['type']> | undefined;

/** Names the rows that a batch will read. */
export function touchAll(views: Views, events: readonly Recorded<BerthEvent>[]): void {
  for (const recorded of events) {
    const handler = handlerOf(recorded);
    if (!handler) continue;
    if (!handler.repeatable) views.applied_events.want(recorded.id);
    handler.touches(views, recorded);
  }
}

/** Folds events, in order, into rows that were loaded. */
export function applyAll(views: Views, events: readonly Recorded<BerthEvent>[]): void {
  for (const recorded of events) {
    const handler = handlerOf(recorded);
    if (!handler) continue;
    if (!handler.repeatable) {
      if (views.applied_events.get(recorded.id)) continue;
      views.applied_events.put({ event_id: recorded.id, position: positionOf(recorded) });
    }
    handler.apply(views, recorded);
  }
}

import { remembering } from '#domain/decider.js';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { Views } from '../rows/views.js';
import { callHandlers } from './call-handlers.js';
import { catalogHandlers } from './catalog-handlers.js';
import { decisionHandlers } from './decision-handlers.js';
import { evictionHandlers } from './eviction-handlers.js';
import { fleetHandlers } from './fleet-handlers.js';
import type { Handler, Handlers } from './handler.js';
import { historyHandlers } from './history-handlers.js';
import { keyHandlers } from './key-handlers.js';
import { operatorHandlers } from './operator-handlers.js';
import { pullHandlers } from './pull-handlers.js';
import { residentHandlers } from './resident-handlers.js';
import { settingsHandlers } from './settings-handlers.js';
import { whatIfHandlers } from './what-if-handlers.js';
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
  ...settingsHandlers,
  ...keyHandlers,
  ...operatorHandlers,
  ...pullHandlers,
  ...whatIfHandlers,
};

/** Streams that the views are folded from. */
export const PREFIXES = [
  'worker-',
  'calls-',
  'history-',
  'catalog-',
  'fleet-',
  'settings-',
  'key-',
  'operator-',
  'pull-',
] as const;

/** The map is typed by event type, which a lookup by a value of the union cannot show. */
const handlerOf = (recorded: Recorded<BerthEvent>): Handler<BerthEvent['type']> | undefined =>
  handlers[recorded.event.type] as Handler<BerthEvent['type']> | undefined;

/** Names the rows that a batch will read. */
export function touchAll(views: Views, events: readonly Recorded<BerthEvent>[]): void {
  for (const recorded of events) {
    const handler = handlerOf(recorded);
    if (!handler) continue;
    if (!handler.repeatable) views.recent_events.want(recorded.stream);
    handler.touches(views, recorded);
  }
}

/** Whether a retry wrote it a second time; else it is remembered. */
function isRepetition(views: Views, { stream, id }: Recorded<BerthEvent>): boolean {
  const ids = views.recent_events.get(stream)?.event_ids ?? [];
  if (ids.includes(id)) return true;
  views.recent_events.put({ stream, event_ids: [...remembering(ids, id)] });
  return false;
}

/** Folds events, in order, into rows that were loaded. */
export function applyAll(views: Views, events: readonly Recorded<BerthEvent>[]): void {
  for (const recorded of events) {
    const handler = handlerOf(recorded);
    if (!handler) continue;
    if (!handler.repeatable) {
      if (isRepetition(views, recorded)) continue;
    }
    handler.apply(views, recorded);
  }
}

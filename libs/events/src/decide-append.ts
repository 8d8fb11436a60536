import { performance } from 'node:perf_hooks';
import type { LogPosition, Recorded, WorkerEvent } from '#domain/events/index.js';
import { BackOff, pause } from './back-off.js';
import type { EventLog, NewEvent } from './event-log.js';
import { messageOf } from './log-failures.js';

/** An event that carries a decision of ours. */
export type DecisionEvent = Extract<
  WorkerEvent,
  { type: 'PlacementDecided' | 'PlacementRefused' | 'UnloadDecided' | 'CoresRepinned' }
>;

export type DecisionAppended =
  /** It stands in the log, by this append or by an earlier one whose answer was lost. */
  | { readonly kind: 'done'; readonly revision: number; readonly position: LogPosition }
  /**
   * Others wrote first. Fold `newEvents`, in their order; if the plan still stands append it again expecting
   * `revision`, else decide again.
   */
  | {
      readonly kind: 'overtaken';
      readonly newEvents: readonly Recorded<WorkerEvent>[];
      readonly revision: number;
    }
  /** Unknown whether it was written: nothing may be acted on. The same call with the same event tells later. */
  | { readonly kind: 'unavailable'; readonly message: string }
  | { readonly kind: 'refused'; readonly message: string };

export interface DecisionAppendOptions {
  /** For all tries together; 5,000 when left out. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

const TRY_MS = 2000;

/**
 * Appends a decision that was folded from `revision` of the worker's stream. An unknown outcome is tried again under
 * the same id and revision, which never writes twice; a conflict is looked into, since the events that were written
 * meanwhile may hold the decision itself.
 */
export async function appendDecision(
  log: EventLog,
  stream: string,
  revision: number,
  decision: NewEvent<DecisionEvent>,
  options: DecisionAppendOptions = {},
): Promise<DecisionAppended> {
  const until = performance.now() + (options.deadlineMs ?? 5000);
  const signal = options.signal ?? new AbortController().signal;
  const backOff = new BackOff({ firstMs: 50, mostMs: 1000 });
  for (;;) {
    const leftMs = Math.max(1, until - performance.now());
    const result = await tryOnce(log, stream, revision, decision, Math.min(leftMs, TRY_MS));
    if (result.kind !== 'unavailable') return result;
    const waitMs = backOff.next();
    if (signal.aborted || performance.now() + waitMs >= until) return result;
    await pause(waitMs, signal);
  }
}

async function tryOnce(
  log: EventLog,
  stream: string,
  revision: number,
  decision: NewEvent<DecisionEvent>,
  deadlineMs: number,
): Promise<DecisionAppended> {
  const expected = revision < 0 ? 'no-stream' : revision;
  const outcome = await log.append(stream, [decision], expected, { deadlineMs });
  if (outcome.ok) return { kind: 'done', ...outcome.value };
  if (outcome.error.kind !== 'conflict') return outcome.error;
  const newEvents: Recorded<WorkerEvent>[] = [];
  try {
    for await (const recorded of log.readForwards<WorkerEvent>(stream, { fromRevision: revision + 1 }))
      newEvents.push(recorded);
  } catch (error) {
    return { kind: 'unavailable', message: messageOf(error) };
  }
  const own = newEvents.find((recorded) => isOwn(recorded, decision));
  if (own) return { kind: 'done', revision: own.revision, position: own.position };
  const last = newEvents.at(-1);
  // Events of types that this version does not know are not read, but they are there.
  return {
    kind: 'overtaken',
    newEvents,
    revision: Math.max(outcome.error.actual, last?.revision ?? revision),
  };
}

/** By its decision id, not by its event id: a plan appended again after others keeps the first. */
function isOwn(recorded: Recorded<WorkerEvent>, decision: NewEvent<DecisionEvent>): boolean {
  const { event } = recorded;
  return event.type === decision.event.type && event.data.decisionId === decision.event.data.decisionId;
}

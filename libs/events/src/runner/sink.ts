import type { BerthEvent, BerthEventType, LogPosition, Recorded } from '#domain/events/index.js';

export interface CatchUpBatch {
  /** In the order of the log; empty when only the position moved on. */
  readonly events: readonly Recorded<BerthEvent>[];
  /** The log that they come from: to be kept beside the checkpoint. */
  readonly logId: string;
  /**
   * The checkpoint that this batch follows. A sink whose stored one is another must write nothing and throw: somebody
   * else is at work on the same rows.
   */
  readonly after: LogPosition | undefined;
}

/**
 * Where a projection goes. Exactly once comes from `commit`: rows and checkpoint stand or fall together, so it must be
 * one transaction. When it throws, whether it was done is looked up by `begin`; nothing is assumed.
 */
export interface CatchUpSink {
  /** What was committed last; called at the start and after every failure. Also the place to take a lock. */
  begin(): Promise<{ readonly checkpoint?: LogPosition; readonly logId?: string }>;
  /** Empties the rows and the checkpoint in one transaction: they come from another log. */
  reset(logId: string): Promise<void>;
  /** Writes the rows of the batch, `position` and the log's id in one transaction. */
  commit(batch: CatchUpBatch, position: LogPosition): Promise<void>;
}

/** One handler per event type; a type without one is passed over. */
export type EventHandlers<Tx> = {
  readonly [T in BerthEventType]?: (
    recorded: Recorded<Extract<BerthEvent, { type: T }>>,
    tx: Tx,
  ) => void | Promise<void>;
};

/** Gives each event to the handler of its type, one after the other. */
export async function dispatch<Tx>(
  handlers: EventHandlers<Tx>,
  events: readonly Recorded<BerthEvent>[],
  tx: Tx,
): Promise<void> {
  for (const recorded of events) {
    // The map is typed by event type, which a lookup by a value of the union cannot show.
    const handler = handlers[recorded.event.type] as
      ((recorded: Recorded<BerthEvent>, tx: Tx) => void | Promise<void>) | undefined;
    await handler?.(recorded, tx);
  }
}

import type { BerthEvent, LogPosition, Recorded } from '#domain/events/index.js';
import type { EventLog } from '#events/event-log.js';
import type { ViewsDb } from '#schema/connect.js';
import { PREFIXES } from '../handlers/index.js';
import { BatchWriter } from '../run/batch-writer.js';
import type { Checkpoint } from '../run/checkpoint.js';

export interface FoldOptions {
  readonly log: EventLog;
  readonly db: ViewsDb;
  readonly schema: string;
  /** Where the tables stand. */
  readonly from: Checkpoint;
  /** The last position to be folded; it must not lie beyond the log's end. */
  readonly through: LogPosition;
  readonly onSetAside: (recorded: Recorded<BerthEvent>, error: Error) => void;
  /** After each batch: how many events it had, and how far that is. */
  readonly onProgress?: (events: number, position: LogPosition) => void;
  readonly signal?: AbortSignal;
}

const BATCH_EVENTS = 2000;

/**
 * Folds the log into tables up to one position and not beyond it. While a batch is written the next one is read.
 * @returns where the tables stand then: exactly `through`, or further on if they were there before.
 */
export async function foldThrough(options: FoldOptions): Promise<Checkpoint> {
  const { log, db, schema, from, through, onSetAside, onProgress, signal } = options;
  if (from.position && from.position.commit >= through.commit) return from;
  const writer = new BatchWriter({ db, schema, from, onSetAside });
  let events: Recorded<BerthEvent>[] = [];
  let writing: Promise<void> = Promise.resolve();
  const write = async (position: LogPosition): Promise<void> => {
    await writing;
    const batch = { events, through: position };
    events = [];
    writing = writer.write(batch).then(() => onProgress?.(batch.events.length, position));
    writing.catch(() => undefined);
  };
  const progress = { reachedEnd: false };
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = () => {
      progress.reachedEnd = true;
      resolve();
    };
  });
  const subscription = log.subscribeAll(
    PREFIXES,
    {
      onEvent: async (recorded) => {
        if (progress.reachedEnd) return;
        if (recorded.position.commit > through.commit) {
          end();
          return;
        }
        events.push(recorded);
        if (events.length >= BATCH_EVENTS) await write(recorded.position);
      },
      onCheckpoint: (position) => {
        if (position.commit >= through.commit) end();
      },
      // Everything that was in the log by now was handed out, and `through` was in the log before.
      onCaughtUp: () => end(),
    },
    from.position ? { after: from.position } : {},
  );
  const stopped = new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()));
  try {
    await Promise.race([ended, subscription.ended, stopped]);
  } finally {
    await subscription.stop();
  }
  signal?.throwIfAborted();
  if (!progress.reachedEnd) throw new Error('The event log was closed under the replay.');
  await write(through);
  await writing;
  return { ...from, position: through };
}

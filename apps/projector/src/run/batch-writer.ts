import type { BerthEvent, LogPosition, Recorded } from '#domain/events/index.js';
import type { ViewsDb } from '#schema/connect.js';
import { positionOf } from '../handlers/handler.js';
import { foldBatch, HandlerFailure } from '../rows/fold.js';
import { postgresRows, type RowStore } from '../rows/row-store.js';
import { advanceCheckpoint, type Checkpoint } from './checkpoint.js';

export interface Batch {
  readonly events: readonly Recorded<BerthEvent>[];
  /** Everything up to here is in this batch or an earlier one. */
  readonly through: LogPosition;
}

/** Another writer has moved the checkpoint: this one must read it again before it writes anything. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

export interface BatchWriterOptions {
  readonly db: ViewsDb;
  readonly schema: string;
  /** Where the stored checkpoint must be. */
  readonly from: Checkpoint;
  /** Told of each event that no view could take. */
  readonly onSetAside: (recorded: Recorded<BerthEvent>, error: Error) => void;
}

/**
 * Folds a batch into the views: rows and checkpoint in one transaction, so that each event counts exactly once whatever
 * dies in between. An event that the tables refuse is found by halving, set aside and said; the rest goes on.
 */
export class BatchWriter {
  readonly #options: BatchWriterOptions;
  #checkpoint: Checkpoint;

  constructor(options: BatchWriterOptions) {
    this.#options = options;
    this.#checkpoint = options.from;
  }

  /** @throws Overtaken, or what the database said; then nothing or a first part of the batch was written. */
  async write(batch: Batch): Promise<void> {
    try {
      await this.#transaction(batch, (store) => foldBatch(store, batch.events));
      return;
    } catch (error) {
      if (!isAboutData(error)) throw error;
      const [only, ...more] = batch.events;
      if (!only) throw error;
      if (more.length === 0) {
        await this.#transaction(batch, (store) => setAside(store, only, error));
        this.#options.onSetAside(only, error);
        return;
      }
    }
    const middle = Math.ceil(batch.events.length / 2);
    const first = batch.events.slice(0, middle);
    const last = first.at(-1);
    if (last) await this.write({ events: first, through: last.position });
    await this.write({ events: batch.events.slice(middle), through: batch.through });
  }

  async #transaction(batch: Batch, fold: (store: RowStore) => Promise<void>): Promise<void> {
    const { db, schema } = this.#options;
    await db.transaction().execute(async (trx) => {
      if (!(await advanceCheckpoint(trx, schema, this.#checkpoint, batch.through))) {
        throw new Overtaken('another projector has folded on from here');
      }
      if (batch.events.length > 0) await fold(postgresRows(trx, schema));
    });
    this.#checkpoint = { ...this.#checkpoint, position: batch.through };
  }
}

async function setAside(store: RowStore, recorded: Recorded<BerthEvent>, error: Error): Promise<void> {
  const row = {
    event_id: recorded.id,
    position: positionOf(recorded),
    stream: recorded.stream,
    revision: recorded.revision,
    type: recorded.event.type,
    error: error.message,
    at: recorded.metadata.at,
  };
  await store.upsert('set_aside_events', [row]);
}

/**
 * Whether an error comes from what an event holds: a handler that could not read it, or a value that the tables refuse
 * (SQLSTATE 22 and 23, and 54 for a key beyond what an index can hold). Anything else says nothing about the event.
 */
function isAboutData(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = (error as Error & { code?: unknown }).code;
  return (
    error instanceof HandlerFailure || (typeof code === 'string' && /^(22|23|54)[0-9A-Z]{3}$/.test(code))
  );
}

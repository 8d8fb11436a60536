import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { applyAll, touchAll } from '../handlers/index.js';
import { load, loadRows } from './load.js';
import type { ViewTable } from './row-set.js';
import type { RowStore } from './row-store.js';
import { addSummaries, summariesOf } from './summaries.js';
import { emptyViews, VIEW_TABLES, type Views } from './views.js';

/** A handler could not read an event. */
export class HandlerFailure extends Error {
  override readonly name = 'HandlerFailure';
}

/** Folds a batch into the rows of a store: loads what it touches, applies it in order, writes what changed. */
export async function foldBatch(store: RowStore, events: readonly Recorded<BerthEvent>[]): Promise<void> {
  const views = emptyViews();
  asHandler(() => touchAll(views, events));
  await loadRows(store, views);
  asHandler(() => applyAll(views, events));
  const summaries = asHandler(() => summariesOf(views));
  for (const table of ['days', 'size_accuracy'] as const) await load(store, views, table);
  addSummaries(views, summaries);
  await writeRows(store, views);
}

/** One statement after the other: what is still waiting when one fails would run behind the rollback, and stay. */
async function writeRows(store: RowStore, views: Views): Promise<void> {
  for (const table of VIEW_TABLES) await flush(store, views, table);
}

async function flush(store: RowStore, views: Views, table: ViewTable): Promise<void> {
  const rows = views[table].changed();
  if (rows.length > 0) await store.upsert(table, rows);
}

function asHandler<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new HandlerFailure(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

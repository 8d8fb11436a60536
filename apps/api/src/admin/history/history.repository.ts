import { Inject, Injectable } from '@nestjs/common';
import type { DB } from '#schema/db.types.js';
import type { ViewsDb } from '#schema/connect.js';
import { decodePosition } from '../paging/page.js';
import { ViewsReader } from '../views/views-reader.js';
import type { HistoryQuery } from './history.dto.js';

export type LoadRow = DB['load_history'];
export type ServingRow = DB['serving_history'];

export interface Pair {
  readonly workerId: string;
  readonly modelKey: string;
}

/** Newest first. */
export const loadsPage = (db: ViewsDb, pair: Pair, query: HistoryQuery) => {
  let rows = db
    .selectFrom('load_history')
    .selectAll()
    .where('worker_id', '=', pair.workerId)
    .where('model_key', '=', pair.modelKey);
  if (query.kind !== undefined) rows = rows.where('kind', '=', query.kind);
  if (query.after !== undefined) rows = rows.where('position', '<', decodePosition(query.after));
  return rows.orderBy('position', 'desc').limit(query.limit + 1);
};

/** Newest first. */
export const servingPage = (db: ViewsDb, pair: Pair, query: HistoryQuery) => {
  let rows = db
    .selectFrom('serving_history')
    .selectAll()
    .where('worker_id', '=', pair.workerId)
    .where('model_key', '=', pair.modelKey);
  if (query.after !== undefined) rows = rows.where('position', '<', decodePosition(query.after));
  return rows.orderBy('position', 'desc').limit(query.limit + 1);
};

@Injectable()
export class HistoryRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  loads(pair: Pair, query: HistoryQuery): Promise<readonly LoadRow[]> {
    return this.#views.read((db) => loadsPage(db, pair, query).execute());
  }

  serving(pair: Pair, query: HistoryQuery): Promise<readonly ServingRow[]> {
    return this.#views.read((db) => servingPage(db, pair, query).execute());
  }

  /** The measurement of the load that made a resident. */
  loadOf(residentId: string): Promise<LoadRow | undefined> {
    return this.#views.read((db) =>
      db
        .selectFrom('load_history')
        .selectAll()
        .where('resident_id', '=', residentId)
        .where('kind', '=', 'measured')
        .orderBy('position', 'desc')
        .limit(1)
        .executeTakeFirst(),
    );
  }
}

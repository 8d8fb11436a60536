import { Inject, Injectable } from '@nestjs/common';
import type { DB } from '#schema/db.types.js';
import type { ViewsDb } from '#schema/connect.js';
import { decodePosition } from '../paging/page.js';
import { ViewsReader } from '../views/views-reader.js';
import type { EvictionsQuery } from './evictions.dto.js';

export type EvictionRow = DB['evictions'];

/** Newest first. */
export const evictionsPage = (db: ViewsDb, query: EvictionsQuery) => {
  let rows = db.selectFrom('evictions').selectAll();
  if (query.worker !== undefined) rows = rows.where('worker_id', '=', query.worker);
  if (query.model !== undefined) rows = rows.where('model_key', '=', query.model);
  if (query.resident !== undefined) rows = rows.where('resident_id', '=', query.resident);
  if (query.reason !== undefined) rows = rows.where('reason', '=', query.reason);
  if (query.after !== undefined) rows = rows.where('position', '<', decodePosition(query.after));
  return rows.orderBy('position', 'desc').limit(query.limit + 1);
};

@Injectable()
export class EvictionsRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: EvictionsQuery): Promise<readonly EvictionRow[]> {
    return this.#views.read((db) => evictionsPage(db, query).execute());
  }
}

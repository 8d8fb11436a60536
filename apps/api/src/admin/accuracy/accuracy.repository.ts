import { Inject, Injectable } from '@nestjs/common';
import { sql } from 'kysely';
import type { DB } from '#schema/db.types.js';
import type { ViewsDb } from '#schema/connect.js';
import { decodeCursor } from '../paging/page.js';
import { ViewsReader } from '../views/views-reader.js';
import type { AccuracyQuery } from './accuracy.dto.js';

export type AccuracyRow = DB['size_accuracy'];

/** By model, worker and class, of which the engine's build is a part. */
export const accuracyPage = (db: ViewsDb, query: AccuracyQuery) => {
  let rows = db.selectFrom('size_accuracy').selectAll();
  if (query.worker !== undefined) rows = rows.where('worker_id', '=', query.worker);
  if (query.model !== undefined) rows = rows.where('model_key', '=', query.model);
  if (query.after !== undefined) {
    const [model = '', worker = '', ofClass = ''] = decodeCursor(query.after, 3);
    rows = rows.where(sql<boolean>`(model_key, worker_id, class_key) > (${model}, ${worker}, ${ofClass})`);
  }
  return rows
    .orderBy('model_key')
    .orderBy('worker_id')
    .orderBy('class_key')
    .limit(query.limit + 1);
};

export const accuracyKey = (row: AccuracyRow): readonly string[] => [
  row.model_key,
  row.worker_id,
  row.class_key,
];

@Injectable()
export class AccuracyRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: AccuracyQuery): Promise<readonly AccuracyRow[]> {
    return this.#views.read((db) => accuracyPage(db, query).execute());
  }
}

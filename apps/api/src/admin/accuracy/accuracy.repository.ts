import { Inject, Injectable } from '@nestjs/common';
import { sql } from 'kysely';
import type { DB } from '#schema/db.types.js';
import type { ViewsDb } from '#schema/connect.js';
import { decodeCursor } from '../paging/page.js';
import { ViewsReader } from '../views/views-reader.js';
import type { AccuracyQuery } from './accuracy.dto.js';

export type AccuracyRow = DB['size_accuracy'];

/** By model, worker, class and engine build. */
export const accuracyPage = (db: ViewsDb, query: AccuracyQuery) => {
  let rows = db.selectFrom('size_accuracy').selectAll();
  if (query.worker !== undefined) rows = rows.where('worker_id', '=', query.worker);
  if (query.model !== undefined) rows = rows.where('model_key', '=', query.model);
  if (query.after !== undefined) {
    const [model = '', worker = '', ofClass = '', build = ''] = decodeCursor(query.after, 4);
    rows = rows.where(
      sql<boolean>`(model_key, worker_id, class_key, coalesce(engine_build, '')) > (${model}, ${worker}, ${ofClass}, ${build})`,
    );
  }
  return rows
    .orderBy('model_key')
    .orderBy('worker_id')
    .orderBy('class_key')
    .orderBy(sql`coalesce(engine_build, '')`)
    .limit(query.limit + 1);
};

export const accuracyKey = (row: AccuracyRow): readonly string[] => [
  row.model_key ?? '',
  row.worker_id ?? '',
  row.class_key ?? '',
  row.engine_build ?? '',
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

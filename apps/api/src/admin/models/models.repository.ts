import { Inject, Injectable } from '@nestjs/common';
import { sql } from 'kysely';
import type { DB } from '#schema/db.types.js';
import type { ViewsDb } from '#schema/connect.js';
import { decodeCursor } from '../paging/page.js';
import { ViewsReader } from '../views/views-reader.js';
import type { ModelsQuery } from './models.dto.js';

const models = (db: ViewsDb) =>
  db
    .selectFrom('models as m')
    .leftJoin('workers as w', 'w.worker_id', 'm.worker_id')
    .leftJoinLateral(
      (eb) =>
        eb
          .selectFrom('load_history as h')
          .select([
            'h.seconds as load_seconds',
            'h.measured_bytes',
            'h.at as measured_at',
            'h.event_id as measured_by',
          ])
          .whereRef('h.worker_id', '=', 'm.worker_id')
          .whereRef('h.model_key', '=', 'm.model_key')
          .where('h.kind', '=', 'measured')
          .orderBy('h.position', 'desc')
          .limit(1)
          .as('l'),
      (join) => join.on(sql<boolean>`true`),
    )
    .selectAll('m')
    .select([
      'w.name as worker_name',
      'l.load_seconds',
      'l.measured_bytes',
      'l.measured_at',
      'l.measured_by',
    ]);

/** In the order of their names. */
export const modelsPage = (db: ViewsDb, query: ModelsQuery) => {
  let rows = models(db);
  if (query.worker !== undefined) rows = rows.where('m.worker_id', '=', query.worker);
  if (!query.gone) rows = rows.where('m.gone_at', 'is', null);
  if (query.after !== undefined) {
    const [key = '', worker = ''] = decodeCursor(query.after, 2);
    rows = rows.where(sql<boolean>`(m.model_key, m.worker_id) > (${key}, ${worker})`);
  }
  return rows
    .orderBy('m.model_key')
    .orderBy('m.worker_id')
    .limit(query.limit + 1);
};

export const modelOnWorkers = (db: ViewsDb, modelKey: string) =>
  models(db).where('m.model_key', '=', modelKey).orderBy('m.worker_id');

export const residentsOf = (db: ViewsDb, modelKeys: readonly string[]) =>
  db
    .selectFrom('residents')
    .select(['worker_id', 'model_key', 'resident_id', 'phase', 'artifact', 'context_tokens'])
    .where('phase', '<>', 'ended')
    .where('model_key', 'in', modelKeys)
    .orderBy('position');

export type ModelRow = Awaited<ReturnType<ReturnType<typeof models>['execute']>>[number];
export type ModelResidentRow = Pick<
  DB['residents'],
  'worker_id' | 'model_key' | 'resident_id' | 'phase' | 'artifact' | 'context_tokens'
>;
export interface ModelsAndResidents {
  readonly models: readonly ModelRow[];
  readonly residents: readonly ModelResidentRow[];
}

@Injectable()
export class ModelsRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: ModelsQuery): Promise<ModelsAndResidents> {
    return this.#views.read(async (db) => withResidents(db, await modelsPage(db, query).execute()));
  }

  find(modelKey: string): Promise<ModelsAndResidents> {
    return this.#views.read(async (db) => withResidents(db, await modelOnWorkers(db, modelKey).execute()));
  }
}

async function withResidents(db: ViewsDb, rows: readonly ModelRow[]): Promise<ModelsAndResidents> {
  const keys = [...new Set(rows.map((row) => row.model_key))];
  return { models: rows, residents: keys.length === 0 ? [] : await residentsOf(db, keys).execute() };
}

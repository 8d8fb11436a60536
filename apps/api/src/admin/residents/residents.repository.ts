import { Inject, Injectable } from '@nestjs/common';
import { sql } from 'kysely';
import type { ViewsDb } from '#schema/connect.js';
import { decodePosition } from '../paging/page.js';
import { ViewsReader } from '../views/views-reader.js';
import type { ResidentsQuery } from './residents.dto.js';

/** Newest first; one more than the limit, so that it shows whether there is a next page. */
export const residentsPage = (db: ViewsDb, query: ResidentsQuery) => {
  let rows = residents(db);
  if (query.state === 'live') rows = rows.where('r.phase', '<>', 'ended');
  if (query.state === 'ended') rows = rows.where('r.phase', '=', 'ended');
  if (query.worker !== undefined) rows = rows.where('r.worker_id', '=', query.worker);
  if (query.model !== undefined) rows = rows.where('r.model_key', '=', query.model);
  if (query.after !== undefined) rows = rows.where('r.position', '<', decodePosition(query.after));
  return rows.orderBy('r.position', 'desc').limit(query.limit + 1);
};

const residents = (db: ViewsDb) =>
  db
    .selectFrom('residents as r')
    .leftJoin('workers as w', 'w.worker_id', 'r.worker_id')
    .leftJoinLateral(
      (eb) =>
        eb
          .selectFrom('calls as c')
          .select('c.received_at as last_call_at')
          .whereRef('c.resident_id', '=', 'r.resident_id')
          .orderBy('c.received_at', 'desc')
          .limit(1)
          .as('l'),
      (join) => join.on(sql<boolean>`true`),
    )
    .selectAll('r')
    .select(['w.name as worker_name', 'l.last_call_at']);

export type ResidentRow = Awaited<ReturnType<ReturnType<typeof residents>['execute']>>[number];

@Injectable()
export class ResidentsRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: ResidentsQuery): Promise<readonly ResidentRow[]> {
    return this.#views.read((db) => residentsPage(db, query).execute());
  }

  find(residentId: string): Promise<ResidentRow | undefined> {
    return this.#views.read((db) => residents(db).where('r.resident_id', '=', residentId).executeTakeFirst());
  }
}

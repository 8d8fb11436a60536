import { Inject, Injectable } from '@nestjs/common';
import type { DB } from '#schema/db.types.js';
import type { ViewsDb } from '#schema/connect.js';
import { decodePosition } from '../paging/page.js';
import { ViewsReader } from '../views/views-reader.js';
import type { DecisionsQuery } from './decisions.dto.js';

export type DecisionRow = DB['decisions'];
export type WorkingRow = DB['decision_workings'];

/** Newest first. */
export const decisionsPage = (db: ViewsDb, query: DecisionsQuery) => {
  let rows = db.selectFrom('decisions').selectAll();
  if (query.model !== undefined) rows = rows.where('model_key', '=', query.model);
  if (query.worker !== undefined) rows = rows.where('worker_id', '=', query.worker);
  if (query.call !== undefined) rows = rows.where('call_id', '=', query.call);
  if (query.state !== undefined) rows = rows.where('state', '=', query.state);
  if (query.after !== undefined) rows = rows.where('position', '<', decodePosition(query.after));
  return rows.orderBy('position', 'desc').limit(query.limit + 1);
};

/** What a call asked for, oldest first. */
export const decisionsOfCall = (db: ViewsDb, callId: string) =>
  db.selectFrom('decisions').selectAll().where('call_id', '=', callId).orderBy('position');

@Injectable()
export class DecisionsRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: DecisionsQuery): Promise<readonly DecisionRow[]> {
    return this.#views.read((db) => decisionsPage(db, query).execute());
  }

  ofCall(callId: string): Promise<readonly DecisionRow[]> {
    return this.#views.read((db) => decisionsOfCall(db, callId).execute());
  }

  find(decisionId: string): Promise<DecisionRow | undefined> {
    return this.#views.read((db) =>
      db.selectFrom('decisions').selectAll().where('decision_id', '=', decisionId).executeTakeFirst(),
    );
  }

  working(decisionId: string): Promise<WorkingRow | undefined> {
    return this.#views.read((db) =>
      db.selectFrom('decision_workings').selectAll().where('decision_id', '=', decisionId).executeTakeFirst(),
    );
  }
}

import { Inject, Injectable } from '@nestjs/common';
import type { OperatorItem } from '#domain/wire/index.js';
import type { ViewsDb } from '#schema/connect.js';
import type { DB } from '#schema/db.types.js';
import { decodePosition } from '../paging/page.js';
import { present } from '../views/present.js';
import { ViewsReader } from '../views/views-reader.js';
import type { ActionsQuery } from './operator.dto.js';

export type ActionRow = DB['operator_actions'];

/** Newest first. */
export const actionsPage = (db: ViewsDb, query: ActionsQuery) => {
  let rows = db.selectFrom('operator_actions').selectAll();
  if (query.worker !== undefined) rows = rows.where('worker_id', '=', query.worker);
  if (query.action !== undefined) rows = rows.where('action', '=', query.action);
  if (query.state !== undefined) rows = rows.where('state', '=', query.state);
  if (query.after !== undefined) rows = rows.where('position', '<', decodePosition(query.after));
  return rows.orderBy('position', 'desc').limit(query.limit + 1);
};

export const actionView = (row: ActionRow): OperatorItem => ({
  actionId: row.action_id,
  workerId: row.worker_id,
  state: row.state as OperatorItem['state'],
  ...present({
    action: row.action,
    target: row.target,
    by: row.by_whom,
    result: row.result,
    requestedAt: row.requested_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  }),
});

@Injectable()
export class OperatorRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: ActionsQuery): Promise<readonly ActionRow[]> {
    return this.#views.read((db) => actionsPage(db, query).execute());
  }

  find(actionId: string): Promise<ActionRow | undefined> {
    return this.#views.read((db) =>
      db.selectFrom('operator_actions').selectAll().where('action_id', '=', actionId).executeTakeFirst(),
    );
  }
}

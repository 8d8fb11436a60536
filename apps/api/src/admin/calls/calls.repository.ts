import { Inject, Injectable } from '@nestjs/common';
import type { DB } from '#schema/db.types.js';
import type { ViewsDb } from '#schema/connect.js';
import { sql } from 'kysely';
import { decodePosition, decodeTimeAndPosition } from '../paging/page.js';
import { ViewsReader } from '../views/views-reader.js';
import type { CallsQuery } from './calls.dto.js';

export type CallRow = DB['calls'];

/**
 * A range of time is read along the times, or a far one would be looked for from the newest call on; so is a resident's, by
 * its index.
 */
const isTimed = ({ since, until, resident }: CallsQuery): boolean =>
  since !== undefined || until !== undefined || resident !== undefined;

export const callKey = (query: CallsQuery, row: CallRow): readonly string[] =>
  isTimed(query) ? [row.received_at, row.position] : [row.position];

/** Newest first. */
export const callsPage = (db: ViewsDb, query: CallsQuery) => {
  let rows = db.selectFrom('calls').selectAll();
  if (query.model !== undefined) rows = rows.where('model_key', '=', query.model);
  if (query.worker !== undefined) rows = rows.where('worker_id', '=', query.worker);
  if (query.resident !== undefined) rows = rows.where('resident_id', '=', query.resident);
  if (query.key !== undefined) rows = rows.where('key_id', '=', query.key);
  if (query.outcome === 'running') rows = rows.where('outcome', 'is', null);
  else if (query.outcome !== undefined) rows = rows.where('outcome', '=', query.outcome);
  if (query.since !== undefined) rows = rows.where('received_at', '>=', query.since);
  if (query.until !== undefined) rows = rows.where('received_at', '<', query.until);
  if (isTimed(query)) {
    if (query.after !== undefined) {
      const [at, position] = decodeTimeAndPosition(query.after);
      rows = rows.where(sql<boolean>`(received_at, position) < (${at}, ${position})`);
    }
    return rows
      .orderBy('received_at', 'desc')
      .orderBy('position', 'desc')
      .limit(query.limit + 1);
  }
  if (query.after !== undefined) rows = rows.where('position', '<', decodePosition(query.after));
  return rows.orderBy('position', 'desc').limit(query.limit + 1);
};

@Injectable()
export class CallsRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: CallsQuery): Promise<readonly CallRow[]> {
    return this.#views.read((db) => callsPage(db, query).execute());
  }

  find(callId: string): Promise<CallRow | undefined> {
    return this.#views.read((db) =>
      db.selectFrom('calls').selectAll().where('call_id', '=', callId).executeTakeFirst(),
    );
  }
}

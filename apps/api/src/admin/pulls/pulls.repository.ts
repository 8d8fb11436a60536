import { Inject, Injectable } from '@nestjs/common';
import type { PulledFile } from '#domain/pulls/pulls.js';
import type { PullItem } from '#domain/wire/index.js';
import type { ViewsDb } from '#schema/connect.js';
import type { DB } from '#schema/db.types.js';
import { IsIn, IsOptional } from 'class-validator';
import { ListQuery, OptionalText } from '../paging/list-query.dto.js';
import { decodePosition } from '../paging/page.js';
import { present } from '../views/present.js';
import { ViewsReader } from '../views/views-reader.js';

const STATES = ['running', 'finished', 'refused', 'failed'] as const;

export class PullsQuery extends ListQuery {
  @OptionalText(200)
  worker?: string;

  @IsOptional()
  @IsIn(STATES)
  state?: (typeof STATES)[number];
}

export type PullRow = DB['pulls'];

/** Newest first. */
export const pullsPage = (db: ViewsDb, query: PullsQuery) => {
  let rows = db.selectFrom('pulls').selectAll();
  if (query.worker !== undefined) rows = rows.where('worker_id', '=', query.worker);
  if (query.state !== undefined) rows = rows.where('state', '=', query.state);
  if (query.after !== undefined) rows = rows.where('position', '<', decodePosition(query.after));
  return rows.orderBy('position', 'desc').limit(query.limit + 1);
};

export const pullView = (row: PullRow): PullItem => ({
  pullId: row.pull_id,
  workerId: row.worker_id,
  state: row.state as PullItem['state'],
  files: row.files as readonly PulledFile[],
  pulledBytes: row.pulled_bytes,
  ...present({
    source: row.source,
    by: row.by_whom,
    reason: row.reason,
    requestedAt: row.requested_at,
    endedAt: row.ended_at,
  }),
});

@Injectable()
export class PullsRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: PullsQuery): Promise<readonly PullRow[]> {
    return this.#views.read((db) => pullsPage(db, query).execute());
  }

  find(pullId: string): Promise<PullRow | undefined> {
    return this.#views.read((db) =>
      db.selectFrom('pulls').selectAll().where('pull_id', '=', pullId).executeTakeFirst(),
    );
  }
}

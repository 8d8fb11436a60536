import { Inject, Injectable } from '@nestjs/common';
import type { DB } from '#schema/db.types.js';
import type { ViewsDb } from '#schema/connect.js';
import type { ListQuery } from '../paging/list-query.dto.js';
import { decodePosition } from '../paging/page.js';
import { ViewsReader } from '../views/views-reader.js';

export type KeyRow = Omit<DB['api_keys'], 'sha256'>;

/** Newest first; never a hash. */
export const keysPage = (db: ViewsDb, query: ListQuery) => {
  let rows = db
    .selectFrom('api_keys')
    .select(['key_id', 'name', 'scope', 'expires_at', 'issued_at', 'revoked_at', 'revoked_by', 'position']);
  if (query.after !== undefined) rows = rows.where('position', '<', decodePosition(query.after));
  return rows.orderBy('position', 'desc').limit(query.limit + 1);
};

@Injectable()
export class KeysRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: ListQuery): Promise<readonly KeyRow[]> {
    return this.#views.read((db) => keysPage(db, query).execute());
  }
}

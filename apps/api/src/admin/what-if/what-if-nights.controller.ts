import { Controller, Get, Inject, Injectable, Query, UsePipes } from '@nestjs/common';
import type { WhatIfFigures, WhatIfLeast, WhatIfNight } from '#domain/wire/index.js';
import type { ViewsDb } from '#schema/connect.js';
import type { DB } from '#schema/db.types.js';
import { ListQuery } from '../paging/list-query.dto.js';
import { decodeCursor, type Page, pageOf } from '../paging/page.js';
import { queryPipe } from '../problem/query-pipe.js';
import { ViewsReader } from '../views/views-reader.js';

type NightRow = DB['what_if_nights'];

/** Newest first. */
const nightsPage = (db: ViewsDb, query: ListQuery) => {
  let rows = db.selectFrom('what_if_nights').selectAll();
  if (query.after !== undefined) rows = rows.where('day', '<', decodeCursor(query.after, 1)[0] ?? '');
  return rows.orderBy('day', 'desc').limit(query.limit + 1);
};

const nightView = (row: NightRow): WhatIfNight => ({
  day: row.day,
  from: row.from_at,
  to: row.to_at,
  calls: row.calls,
  leftOut: row.left_out,
  decisions: row.decisions,
  identical: row.identical,
  really: row.really as WhatIfFigures,
  asItWas: row.as_it_was as WhatIfFigures,
  changes: row.changes as WhatIfNight['changes'],
  least: row.least as WhatIfLeast,
  sentence: row.sentence,
});

@Injectable()
export class WhatIfNightsRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  page(query: ListQuery): Promise<readonly NightRow[]> {
    return this.#views.read((db) => nightsPage(db, query).execute());
  }
}

/** The summary of each night, as it was written into the log. */
@Controller('admin/what-if/nightly')
@UsePipes(queryPipe())
export class WhatIfNightsController {
  readonly #nights: WhatIfNightsRepository;

  constructor(@Inject(WhatIfNightsRepository) nights: WhatIfNightsRepository) {
    this.#nights = nights;
  }

  @Get()
  async list(@Query() query: ListQuery): Promise<Page<WhatIfNight>> {
    return pageOf(await this.#nights.page(query), query.limit, ({ day }) => [day], nightView);
  }
}

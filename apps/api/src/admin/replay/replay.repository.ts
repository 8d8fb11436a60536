import { Inject, Injectable } from '@nestjs/common';
import { sql } from 'kysely';
import { VIEWS_SCHEMA } from '#schema/connect.js';
import { replayLock } from '#schema/replay-lock.js';
import { ViewsReader } from '../views/views-reader.js';

/** Takes the turn and gives it back with the end of the statement. */
const replayTurn = () => sql<{ free: boolean }>`
  select pg_try_advisory_xact_lock(hashtextextended(${replayLock(VIEWS_SCHEMA)}, 0)) as free`;

@Injectable()
export class ReplayRepository {
  readonly #views: ViewsReader;

  constructor(@Inject(ViewsReader) views: ViewsReader) {
    this.#views = views;
  }

  /** Whether nobody replays these views: not another api either, and no command line. */
  isFree(): Promise<boolean> {
    return this.#views.read(async (db) => (await replayTurn().execute(db)).rows[0]?.free === true);
  }
}

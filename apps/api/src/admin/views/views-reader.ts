import { BerthFailure, berthError } from '#domain/errors.js';
import { isUnreachable, VIEWS_SCHEMA, type ViewsDb } from '#schema/connect.js';

/** Reads the views, and says `views_unavailable` whenever they cannot answer: nothing else of the api needs them. */
export class ViewsReader {
  readonly #db: ViewsDb | undefined;

  /** @param db undefined when no Postgres was named. */
  constructor(db: ViewsDb | undefined) {
    this.#db = db?.withSchema(VIEWS_SCHEMA);
  }

  /** @throws BerthFailure `views_unavailable` */
  async read<T>(work: (db: ViewsDb) => Promise<T>): Promise<T> {
    if (!this.#db) throw unavailable('no DATABASE_URL was given', undefined);
    try {
      return await work(this.#db);
    } catch (error) {
      const why = reasonOf(error);
      if (why === undefined) throw error;
      throw unavailable(why, error);
    }
  }
}

function reasonOf(error: unknown): string | undefined {
  if (isUnreachable(error)) return 'Postgres does not answer';
  switch ((error as { code?: unknown } | undefined)?.code) {
    // Undefined schema, table or column: the projector has not migrated yet, or is about to.
    case '3F000':
    case '42P01':
    case '42703':
      return 'the projector has not prepared them yet';
    // The statement's own time limit.
    case '57014':
      return 'Postgres took too long';
    default:
      return undefined;
  }
}

const unavailable = (why: string, cause: unknown) =>
  new BerthFailure(
    berthError(
      'views_unavailable',
      `The views cannot be read: ${why}. Calls to models go on; ask again in a few seconds.`,
      { retryAfterSeconds: 2 },
    ),
    { cause },
  );

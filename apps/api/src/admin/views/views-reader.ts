import { BerthFailure, berthError } from '#domain/errors.js';
import { isUnreachable, VIEWS_SCHEMA, type ViewsDb } from '#schema/connect.js';

/** Reads the views, and says `views_unavailable` whenever they cannot answer: nothing else of the api needs them. */
export class ViewsReader {
  readonly #db: ViewsDb | undefined;

  /** @param db undefined when no Postgres was named. */
  constructor(db: ViewsDb | undefined) {
    this.#db = db?.withSchema(VIEWS_SCHEMA);
  }

  /** @throws BerthFailure `views_unavailable`, or `invalid_request` for a value that Postgres cannot take as what it stands for */
  async read<T>(work: (db: ViewsDb) => Promise<T>): Promise<T> {
    if (!this.#db) throw unavailable('no DATABASE_URL was given', undefined);
    try {
      return await work(this.#db);
    } catch (error) {
      if (NO_VALUE.has(codeOf(error))) throw unusable(error);
      const why = reasonOf(error);
      if (why === undefined) throw error;
      throw unavailable(why, error);
    }
  }
}

/**
 * Of a time, a number or a text: not one, too large, or with a character that no text may hold. What is asked with is put
 * into statements as it came, a cursor that somebody made himself among it.
 */
const NO_VALUE: ReadonlySet<unknown> = new Set(['22003', '22007', '22008', '22021', '22P02']);

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code;

const unusable = (cause: unknown) =>
  new BerthFailure(
    berthError(
      'invalid_request',
      'A value of the request is none of its kind: look at its ids, its times and its cursor, which is the `next` of a page before.',
    ),
    { cause },
  );

function reasonOf(error: unknown): string | undefined {
  if (isUnreachable(error)) return 'Postgres does not answer';
  switch (codeOf(error)) {
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

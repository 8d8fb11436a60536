import { BerthFailure, berthError } from '#domain/errors.js';

/** One page of a list; `next` continues behind it, and is absent on the last page. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next?: string;
}

/** Where a page ended: the sort key of its last row. Opaque to clients. */
export const encodeCursor = (...key: readonly string[]): string =>
  Buffer.from(JSON.stringify(key)).toString('base64url');

/** @throws BerthFailure `invalid_request` when the text is no cursor of such a list. */
export function decodeCursor(text: string, parts: number): readonly string[] {
  try {
    const key: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (Array.isArray(key) && key.length === parts && key.every((part) => typeof part === 'string'))
      return key;
  } catch {
    // Falls through to the refusal, which says more than a parser's words.
  }
  throw badCursor();
}

/** A position of the log, as text. */
export const POSITION = /^\d{1,20}$/;

/** A cursor of a list that is ordered by position, newest first. */
export function decodePosition(text: string): string {
  const [position = ''] = decodeCursor(text, 1);
  if (!POSITION.test(position)) throw badCursor();
  return position;
}

/** A cursor of a list that is ordered by time and then by position, newest first. */
export function decodeTimeAndPosition(text: string): readonly [at: string, position: string] {
  const [at = '', position = ''] = decodeCursor(text, 2);
  if (!Number.isFinite(Date.parse(at)) || !POSITION.test(position)) throw badCursor();
  return [at, position];
}

export const badCursor = (): BerthFailure =>
  new BerthFailure(
    berthError(
      'invalid_request',
      'after is no cursor of this list; take it from the `next` of its last page.',
      {
        param: 'after',
      },
    ),
  );

/**
 * Cuts a page from rows that were asked for with one more than the limit.
 * @param keyOf gives the sort key of a row.
 */
export function pageOf<Row, Item>(
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => readonly string[],
  view: (row: Row) => Item,
): Page<Item> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    items: shown.map(view),
    ...(rows.length > limit && last !== undefined ? { next: encodeCursor(...keyOf(last)) } : {}),
  };
}

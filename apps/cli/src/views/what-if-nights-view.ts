import { formatSeconds } from '#domain/units.js';
import type { WhatIfNight } from '#domain/wire/index.js';
import { wrapped } from '../list-table.js';
import { shorten, table } from '../table.js';

/** So that a line fits: the names of cards are long. */
const MOST_NAME = 26;

/** The summary of each night, newest first; at most 100 columns. */
export function nightsText(nights: readonly WhatIfNight[]): string {
  const [last] = nights;
  if (last === undefined)
    return wrapped(
      'No night was summarised yet: it is done after 3 in the morning, of a day with calls. Ask for one with `berth what-if --last 24h`.',
    );
  const rows = nights.map(({ day, calls, really, least, changes: [more] }) => [
    day,
    calls.toLocaleString('en'),
    String(really.refused),
    String(really.loads),
    formatSeconds(really.loadSeconds),
    least.ratio === undefined ? '' : `${least.ratio.toFixed(1)} ×`,
    more === undefined ? '' : `${Math.round(more.loadsSaved * 100)} % by ${shorten(more.name, MOST_NAME)}`,
  ]);
  const head = ['night', 'calls', 'refused', 'loads', 'loading', 'of least', 'more memory saves'];
  return `${table(head, rows, [1, 2, 3, 4, 5])}\n\n${wrapped(`${last.day}: ${last.sentence}`)}`;
}

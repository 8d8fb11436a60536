import { beginning, columnsOf, GAP, MOST_COLUMNS, shorten, widthsOf } from './table.js';

/** The first three parts of an id tell it from those of the same minute. */
const LEAST_ID = 19;
const LEAST_FLEXIBLE = 8;

const COLOURS: Readonly<Record<string, number>> = {
  ready: 32,
  completed: 32,
  done: 32,
  finished: 32,
  loading: 33,
  planned: 33,
  running: 33,
  requested: 33,
  waiting: 33,
  open: 33,
  leaving: 33,
  failed: 31,
  refused: 31,
  abandoned: 31,
  crashed: 31,
};

/** On a terminal that wants them; never into a pipe or a file. */
export const wantsColours = (
  stream: Pick<NodeJS.WriteStream, 'isTTY'>,
  env: Readonly<Record<string, string | undefined>>,
): boolean => stream.isTTY && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';

/**
 * A table whose lines fit 100 columns, or the terminal's where it is narrower: what is too long is cut in the one column
 * that may be, then ids at their end.
 */
export function listTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  flexible: number,
  colours = wantsColours(process.stdout, process.env),
  ids: readonly number[] = [],
  columns = columnsOf(),
): string {
  const widths = widthsOf(
    head,
    rows,
    columns < MOST_COLUMNS ? [flexible, ...ids] : [flexible],
    columns,
    (n) => (n === flexible ? LEAST_FLEXIBLE : LEAST_ID),
  );
  const line = (cells: readonly string[], isHead: boolean) =>
    widths
      .map((width, n) => {
        const cell = (n === flexible ? shorten : beginning)(cells[n] ?? '', width);
        const padded = n === widths.length - 1 ? cell : cell.padEnd(width);
        const colour = colours && !isHead ? COLOURS[cell] : undefined;
        return colour === undefined ? padded : `\u001b[${colour}m${padded}\u001b[0m`;
      })
      .join(' '.repeat(GAP))
      .trimEnd();
  return [line(head, true), ...rows.map((row) => line(row, false))].join('\n');
}

/** Sentences broken at blanks so that every line fits; a word that is longer stands alone. */
export function wrapped(text: string, width = columnsOf()): string {
  return text
    .split('\n')
    .map((line) => {
      const lines: string[] = [];
      let now = /^ */.exec(line)?.[0] ?? '';
      let isFirst = true;
      for (const word of line.trimStart().split(' ')) {
        if (!isFirst && now.length + 1 + word.length > width) {
          lines.push(now);
          now = word;
        } else now = isFirst ? now + word : `${now} ${word}`;
        isFirst = false;
      }
      return [...lines, now].join('\n');
    })
    .join('\n');
}

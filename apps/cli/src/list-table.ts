import { shorten } from './table.js';

export const MOST_COLUMNS = 100;
const LEAST_FLEXIBLE = 8;
const GAP = 2;

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

/** A table whose lines fit 100 columns: what is too long is cut in the one column that may be. */
export function listTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  flexible: number,
  colours = wantsColours(process.stdout, process.env),
): string {
  const widths = head.map((title, n) => Math.max(title.length, ...rows.map((row) => (row[n] ?? '').length)));
  const others = widths.reduce(
    (sum, width, n) => sum + (n === flexible ? 0 : width),
    GAP * (head.length - 1),
  );
  widths[flexible] = Math.min(widths[flexible] ?? 0, Math.max(LEAST_FLEXIBLE, MOST_COLUMNS - others));
  const line = (cells: readonly string[], isHead: boolean) =>
    widths
      .map((width, n) => {
        const cell = n === flexible ? shorten(cells[n] ?? '', width) : (cells[n] ?? '');
        const padded = n === widths.length - 1 ? cell : cell.padEnd(width);
        const colour = colours && !isHead ? COLOURS[cell] : undefined;
        return colour === undefined ? padded : `\u001b[${colour}m${padded}\u001b[0m`;
      })
      .join(' '.repeat(GAP))
      .trimEnd();
  return [line(head, true), ...rows.map((row) => line(row, false))].join('\n');
}

/** Sentences broken at blanks so that every line fits; a word that is longer stands alone. */
export function wrapped(text: string, width = MOST_COLUMNS): string {
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

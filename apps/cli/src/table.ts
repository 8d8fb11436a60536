/** Of a line for people; a wider terminal's lines would be hard to read. */
export const MOST_COLUMNS = 100;
/** What is narrower is no terminal that somebody reads tables on. */
const LEAST_COLUMNS = 40;
const LEAST_CELL = 8;
export const GAP = 2;

/** As many as the terminal has, 100 at most; 100 in a pipe or a file. */
export const columnsOf = (stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'> = process.stdout): number =>
  stream.isTTY && stream.columns > 0
    ? Math.min(MOST_COLUMNS, Math.max(LEAST_COLUMNS, stream.columns))
    : MOST_COLUMNS;

/**
 * The width of each column, so that a line fits: those that may be cut are, the first of them as far as it can be, then
 * the next. What holds figures is none of them.
 */
export function widthsOf(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  cut: readonly number[],
  columns: number,
  least: (column: number) => number = () => LEAST_CELL,
): readonly number[] {
  const widths = head.map((title, n) => Math.max(title.length, ...rows.map((row) => (row[n] ?? '').length)));
  let over = widths.reduce((sum, width) => sum + width, GAP * (head.length - 1)) - columns;
  for (const n of cut) {
    const width = widths[n] ?? 0;
    const now = Math.min(width, Math.max(least(n), head[n]?.length ?? 0, width - Math.max(0, over)));
    over -= width - now;
    widths[n] = now;
  }
  return widths;
}

/**
 * Lines for people: columns padded to their widest cell, two blanks between them, no blanks at the end of a line.
 * @param cut the columns that a narrower terminal may cut, first those that are missed least
 */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  rightAligned: readonly number[] = [],
  cut: readonly number[] = [],
  columns = columnsOf(),
): string {
  // A program that reads what is not told as JSON finds it whole.
  const widths = widthsOf(head, rows, columns < MOST_COLUMNS ? cut : [], columns);
  const line = (cells: readonly string[]) =>
    widths
      .map((width, column) => {
        const cell = shorten(cells[column] ?? '', width);
        return rightAligned.includes(column) ? cell.padStart(width) : cell.padEnd(width);
      })
      .join(' '.repeat(GAP))
      .trimEnd();
  return [line(head), ...rows.map(line)].join('\n');
}

/** Cut at its end: the beginning of an id names it as well. */
export const beginning = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, width - 1)}…`;

/** Cut in the middle, where names of models differ least. */
export function shorten(text: string, width: number): string {
  if (text.length <= width) return text;
  const keep = width - 1;
  return `${text.slice(0, Math.floor(keep / 2))}…${text.slice(text.length - Math.ceil(keep / 2))}`;
}

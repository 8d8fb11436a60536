/** Lines that a terminal of 100 columns shows without wrapping. */
export const COLUMNS = 100;

/** Breaks words onto lines of at most `COLUMNS`; a word that is longer is cut into pieces. */
export function wrap(text: string, indent: string, first: string = indent): readonly string[] {
  const lines: string[] = [];
  let line = first;
  let empty = true;
  for (const word of text.split(/\s+/).flatMap((w) => pieces(w, COLUMNS - indent.length))) {
    if (word === '') continue;
    if (!empty && line.length + 1 + word.length > COLUMNS) {
      lines.push(line);
      line = indent;
      empty = true;
    }
    line += empty ? word : ` ${word}`;
    empty = false;
  }
  return [...lines, line.trimEnd()];
}

function pieces(word: string, width: number): readonly string[] {
  const parts: string[] = [];
  for (let at = 0; at < word.length; at += width) parts.push(word.slice(at, at + width));
  return parts;
}

/** `8,192`. */
export const count = (n: number): string => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ',');

/** Rows as columns; numbers in the named columns are aligned right. The last column is not padded. */
export function columns(rows: readonly (readonly string[])[], right: ReadonlySet<number>): readonly string[] {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, cell.length)));
  return rows.map((row) =>
    row
      .map((cell, i) => {
        const width = widths[i] ?? 0;
        if (right.has(i)) return cell.padStart(width);
        return i === row.length - 1 ? cell : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd(),
  );
}

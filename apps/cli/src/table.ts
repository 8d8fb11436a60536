/** Lines for people: columns padded to their widest cell, two blanks between them, no blanks at the end of a line. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  rightAligned: readonly number[] = [],
): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const line = (cells: readonly string[]) =>
    widths
      .map((width, column) => {
        const cell = cells[column] ?? '';
        return rightAligned.includes(column) ? cell.padStart(width) : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd();
  return [line(head), ...rows.map(line)].join('\n');
}

/** Cut in the middle, where names of models differ least. */
export function shorten(text: string, width: number): string {
  if (text.length <= width) return text;
  const keep = width - 1;
  return `${text.slice(0, Math.floor(keep / 2))}…${text.slice(text.length - Math.ceil(keep / 2))}`;
}

/** Edits (insert, delete, replace, swap of neighbours) from one text to the other. */
export function distance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replace);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (before[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

/** The candidate that was most likely meant; undefined when none is close (more than 40 % of the letters differ). */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const wanted = word.toLowerCase();
  let best: { name: string; score: number } | undefined;
  for (const name of candidates) {
    const known = name.toLowerCase();
    // The start of a longer name was probably meant, however much is missing.
    const score = wanted.length >= 3 && known.startsWith(wanted) ? 0.5 : distance(wanted, known);
    if (best === undefined || score < best.score) best = { name, score };
  }
  return best !== undefined && best.score <= Math.max(1, Math.max(word.length, best.name.length) * 0.4)
    ? best.name
    : undefined;
}

/** `; did you mean --port?`, or nothing. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const near = nearest(word, candidates);
  return near === undefined ? '' : `; did you mean ${near}?`;
}

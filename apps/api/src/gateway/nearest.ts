/** The names that are most like a wrong one, nearest first, at most `most`; none that has nothing in common with it. */
export function nearest(wrong: string, names: readonly string[], most = 3): readonly string[] {
  const wanted = wrong.toLowerCase().slice(0, 100);
  return [...new Set(names)]
    .map((name) => ({ name, score: score(wanted, name.toLowerCase()) }))
    .filter(({ score: s }) => s <= 0.6)
    .sort((a, b) => a.score - b.score || (a.name < b.name ? -1 : 1))
    .slice(0, most)
    .map(({ name }) => name);
}

/** Share of characters to change, 0 for equal; a name that holds the other is near, whatever their lengths. */
function score(wanted: string, name: string): number {
  const short = name.split('/').at(-1) ?? name;
  const part = wanted.length >= 3 && (name.includes(wanted) || wanted.includes(short)) ? 0.3 : 1;
  return Math.min(part, relative(wanted, name), relative(wanted, short));
}

const relative = (a: string, b: string): number => distance(a, b) / Math.max(a.length, b.length, 1);

/** Levenshtein's distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Newest first by an ISO time; ISO times of one form sort as text. */
export const newestFirst = <I>(items: Iterable<I>, timeOf: (item: I) => string | undefined): I[] =>
  [...items].sort((a, b) => (timeOf(b) ?? '').localeCompare(timeOf(a) ?? ''));

/**
 * What was paged, and what has happened since: an item that is told live is newer than the same one on a page.
 * @param wanted what the page asked for, so that nothing else comes in from the live side.
 */
export function merged<I>(
  paged: readonly I[],
  told: Iterable<I>,
  parts: { keyOf(item: I): string; timeOf(item: I): string; wanted(item: I): boolean },
): I[] {
  const all = new Map(paged.map((item) => [parts.keyOf(item), item]));
  const oldest = paged.reduce(
    (least, item) => (parts.timeOf(item) < least ? parts.timeOf(item) : least),
    '~',
  );
  for (const item of told) {
    // Older than the last page that was read: it comes with its own page.
    if (paged.length > 0 && parts.timeOf(item) < oldest) continue;
    if (parts.wanted(item)) all.set(parts.keyOf(item), item);
    else all.delete(parts.keyOf(item));
  }
  return newestFirst(all.values(), (item) => parts.timeOf(item));
}

/** In the order in which each key first came. */
export function groupBy<I>(items: Iterable<I>, keyOf: (item: I) => string): Map<string, I[]> {
  const groups = new Map<string, I[]>();
  for (const item of items) {
    const own = groups.get(keyOf(item));
    if (own) own.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

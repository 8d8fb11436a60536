/** A place of the page, as it stands behind the `#`: `/models/owner%2Frepo?tab=x`. */
export interface Place {
  /** First part: `overview`, `decisions`, … */
  readonly page: string;
  /** What follows it, decoded. */
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
}

export function placeOf(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?', 2);
  const [page = '', ...rest] = path
    .split('/')
    .filter((part) => part !== '')
    .map(decoded);
  return { page: page === '' ? 'overview' : page, rest, query: new URLSearchParams(query) };
}

/** A link to a place. What is undefined is left out of the query. */
export function to(
  parts: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  ).toString();
  return `#/${parts.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

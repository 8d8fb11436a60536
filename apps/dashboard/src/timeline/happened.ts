import type { CallItem, EvictionItem, ResidentItem, WirePage } from '#domain/wire/index.js';
import { get, type Query } from '../api/client.js';
import type { Window } from './lanes.js';

const PAGE = 500;
const MOST_PAGES = 4;

export interface Read {
  readonly residents: readonly ResidentItem[];
  readonly calls: readonly CallItem[];
  readonly evictions: readonly EvictionItem[];
  /** More calls than are drawn. */
  readonly callsCut: boolean;
}

/** What the views have of a window. Lists are read newest first, as far back as the window goes. */
export async function happenedIn(window: Window, signal: AbortSignal): Promise<Read> {
  const from = new Date(window.fromMs).toISOString();
  const until = new Date(window.toMs).toISOString();
  const [residents, calls, evictions] = await Promise.all([
    pages<ResidentItem>('admin/residents', { state: 'all' }, signal, (item) => (item.endedAt ?? '~') < from),
    pages<CallItem>('admin/calls', { since: from, until }, signal, () => false),
    pages<EvictionItem>('admin/evictions', {}, signal, (item) => (item.endedAt ?? '~') < from),
  ]);
  return {
    residents: residents.items,
    calls: calls.items,
    evictions: evictions.items,
    callsCut: calls.cut,
  };
}

async function pages<T>(
  path: string,
  query: Query,
  signal: AbortSignal,
  enough: (last: T) => boolean,
): Promise<{ items: readonly T[]; cut: boolean }> {
  const items: T[] = [];
  let after: string | undefined;
  for (let n = 0; n < MOST_PAGES; n++) {
    const page = await get<WirePage<T>>(path, { ...query, limit: PAGE, after }, signal);
    items.push(...page.items);
    const last = page.items.at(-1);
    after = page.next;
    if (after === undefined || (last !== undefined && enough(last))) return { items, cut: false };
  }
  return { items, cut: true };
}

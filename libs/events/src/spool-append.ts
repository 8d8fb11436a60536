import { encodedBytes, MAX_APPEND_BYTES } from './codec.js';
import type { EncodedAppends } from './encoded-appends.js';
import type { SpoolEntry } from './spool-format.js';

export const BATCH_EVENTS = 500;
const BATCH_BYTES = MAX_APPEND_BYTES / 2;

/** The next entries to append together. Never empty while there are any, and never above the log's limit. */
export function takeBatch(entries: readonly SpoolEntry[], from: number): SpoolEntry[] {
  const batch: SpoolEntry[] = [];
  let bytes = 0;
  for (let i = from; i < entries.length && batch.length < BATCH_EVENTS; i++) {
    const entry = entries[i];
    if (!entry) break;
    bytes += entry.eventBytes ?? encodedBytes(entry.event);
    if (batch.length > 0 && bytes > BATCH_BYTES) break;
    batch.push(entry);
  }
  return batch;
}

export interface Appends {
  /** Not acknowledged: to be tried again under the same ids. */
  readonly waiting: readonly SpoolEntry[];
  readonly refused: readonly { readonly entry: SpoolEntry; readonly why: string }[];
}

/** One append per stream, all at once; the order within a stream stands. */
export async function appendGrouped(
  appends: EncodedAppends,
  entries: readonly SpoolEntry[],
): Promise<Appends> {
  const groups = new Map<string, SpoolEntry[]>();
  for (const entry of entries) {
    const group = groups.get(entry.stream);
    if (group) group.push(entry);
    else groups.set(entry.stream, [entry]);
  }
  const results = await Promise.all(
    [...groups].map(([stream, group]) => appendGroup(appends, stream, group)),
  );
  return {
    waiting: results.flatMap((r) => r.waiting),
    refused: results.flatMap((r) => r.refused),
  };
}

async function appendGroup(
  appends: EncodedAppends,
  stream: string,
  group: readonly SpoolEntry[],
): Promise<Appends> {
  const outcome = await appends.appendEncoded(
    stream,
    group.map((entry) => entry.event),
    'any',
  );
  if (outcome.ok) return { waiting: [], refused: [] };
  if (outcome.error.kind === 'unavailable') return { waiting: group, refused: [] };
  if (group.length > 1) return oneByOne(appends, stream, group);
  // With any revision a single event cannot conflict; a server that says so would say so for ever.
  const why =
    outcome.error.kind === 'refused'
      ? outcome.error.message
      : `The event log reports a conflict for a single event of ${stream} that expects nothing.`;
  return { waiting: [], refused: group.map((entry) => ({ entry, why })) };
}

/**
 * A batch of which a part is known already is refused as a whole by servers (after a crash, batches are cut anew), and
 * one bad event spoils its neighbours: each alone is either written, known, or itself at fault.
 */
async function oneByOne(
  appends: EncodedAppends,
  stream: string,
  group: readonly SpoolEntry[],
): Promise<Appends> {
  const refused: { entry: SpoolEntry; why: string }[] = [];
  for (const [index, entry] of group.entries()) {
    const result = await appendGroup(appends, stream, [entry]);
    refused.push(...result.refused);
    if (result.waiting.length > 0) return { waiting: group.slice(index), refused };
  }
  return { waiting: [], refused };
}

import { isDeepStrictEqual } from 'node:util';
import type { CatalogEvent, FoundModel } from '#domain/events/index.js';
import { evolveCatalog, type CatalogState } from '#domain/catalog/catalog.js';
import type { ModelKey } from '#domain/ids.js';
import { streams } from '#events/streams.js';
import type { ScannedModel } from './scan.js';

/** Servers refuse an append above 1 MiB. */
const BATCH_BYTES = 512 * 1024;

/** What must be written so that the log says what was found. */
export function differences(
  state: CatalogState,
  found: ReadonlyMap<ModelKey, ScannedModel>,
  unsettled: ReadonlySet<ModelKey>,
): readonly CatalogEvent[] {
  const events: CatalogEvent[] = [];
  for (const [key, { model }] of found) {
    const known = state.models.get(key);
    if (known === undefined) events.push({ type: 'ModelFound', data: model });
    else if (!unsettled.has(key) && !isSame(model, known)) {
      events.push({ type: 'ModelChanged', data: model });
    }
  }
  for (const [key, known] of state.models) {
    if (found.has(key) || unsettled.has(key)) continue;
    events.push({ type: 'ModelGone', data: { modelKey: key, path: known.path } });
  }
  return events;
}

/** Compared as it comes back from the log, without fields that are undefined; the order of fields says nothing. */
function isSame(model: FoundModel, known: FoundModel): boolean {
  const [one, other] = [written(model), written(known)];
  return one === other || isDeepStrictEqual(JSON.parse(one), JSON.parse(other));
}

/** Thousands of models are compared whenever one of them changed or was hashed. */
const WRITTEN = new WeakMap<FoundModel, string>();

function written(model: FoundModel): string {
  const known = WRITTEN.get(model);
  if (known !== undefined) return known;
  const text = JSON.stringify(model);
  WRITTEN.set(model, text);
  return text;
}

/** The state after an event of our own was appended at the next revision. */
export function applied(state: CatalogState, event: CatalogEvent): CatalogState {
  return evolveCatalog(state, {
    event,
    id: '',
    stream: streams.catalog(state.workerId),
    revision: state.revision + 1,
    position: { commit: 0n, prepare: 0n },
    metadata: { $correlationId: '', $causationId: '', at: '', by: '', schemaVersion: 1 },
  });
}

export function* batches(events: readonly CatalogEvent[]): Iterable<readonly CatalogEvent[]> {
  let batch: CatalogEvent[] = [];
  let bytes = 0;
  for (const event of events) {
    const size = Buffer.byteLength(JSON.stringify(event.data));
    if (batch.length > 0 && bytes + size > BATCH_BYTES) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(event);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

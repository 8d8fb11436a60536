import type { RowStore } from './row-store.js';
import type { RowSet, ViewTable } from './row-set.js';
import { wantUsage } from '../handlers/usage.js';
import type { Views } from './views.js';

const FIRST = [
  'recent_events',
  'workers',
  'models',
  'calls',
  'apis',
  'residents',
  'settings',
  'api_keys',
  'operator_actions',
  'pulls',
  'load_history',
  'what_if_nights',
] as const satisfies readonly ViewTable[];

/**
 * Loads the rows that a batch asked for, and what they lead to: a worker's devices; the hour and day that a call is counted in; a
 * resident's decision and eviction; the victims of a decision that is still open, since its end lets them stay.
 */
export async function loadRows(store: RowStore, views: Views): Promise<void> {
  for (const table of FIRST) await load(store, views, table);
  for (const call of views.calls.present())
    wantUsage(views, call.received_at, call.model_key, call.key_id ?? '');
  for (const table of ['usage_hours', 'usage_days'] as const) await load(store, views, table);
  for (const worker of views.workers.present()) {
    for (const deviceId of worker.device_ids) views.devices.want(worker.worker_id, deviceId);
  }
  for (const resident of views.residents.present()) {
    if (resident.decision_id !== null) views.decisions.want(resident.decision_id);
    if (resident.eviction_id !== null) views.evictions.want(resident.eviction_id);
  }
  for (const table of ['devices', 'decisions', 'evictions'] as const) await load(store, views, table);
  for (const decision of views.decisions.present()) {
    if (decision.state !== 'open') continue;
    if (decision.resident_id !== null) views.residents.want(decision.resident_id);
    for (const victim of decision.victims) views.residents.want(victim);
  }
  await load(store, views, 'residents');
  for (const resident of views.residents.present()) {
    if (resident.eviction_id !== null) views.evictions.want(resident.eviction_id);
  }
  await load(store, views, 'evictions');
}

export async function load(store: RowStore, views: Views, table: ViewTable): Promise<void> {
  const rows: RowSet<ViewTable> = views[table];
  const keys = rows.missing();
  if (keys.length === 0) return;
  rows.loaded(await store.select(table, keys));
}

import { RowSet, type ViewTable } from './row-set.js';

/** Everything that one batch reads and writes: a set of rows per table. */
export type Views = { readonly [T in ViewTable]: RowSet<T> };

/** In the order in which they are written. */
export const VIEW_TABLES = [
  'recent_events',
  'set_aside_events',
  'workers',
  'devices',
  'models',
  'residents',
  'decisions',
  'decision_workings',
  'evictions',
  'calls',
  'load_history',
  'serving_history',
  'apis',
  'settings',
  'api_keys',
  'operator_actions',
  'pulls',
  'usage_hours',
  'usage_days',
  'days',
  'size_accuracy',
  'what_if_nights',
] as const satisfies readonly ViewTable[];

export const emptyViews = (): Views => ({
  recent_events: new RowSet('recent_events'),
  set_aside_events: new RowSet('set_aside_events'),
  workers: new RowSet('workers'),
  devices: new RowSet('devices'),
  models: new RowSet('models'),
  residents: new RowSet('residents'),
  decisions: new RowSet('decisions'),
  decision_workings: new RowSet('decision_workings'),
  evictions: new RowSet('evictions'),
  calls: new RowSet('calls'),
  load_history: new RowSet('load_history'),
  serving_history: new RowSet('serving_history'),
  apis: new RowSet('apis'),
  settings: new RowSet('settings'),
  api_keys: new RowSet('api_keys'),
  operator_actions: new RowSet('operator_actions'),
  pulls: new RowSet('pulls'),
  usage_hours: new RowSet('usage_hours'),
  usage_days: new RowSet('usage_days'),
  days: new RowSet('days'),
  size_accuracy: new RowSet('size_accuracy'),
  what_if_nights: new RowSet('what_if_nights'),
});

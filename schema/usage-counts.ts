import { type DB, TABLES } from './db.types.js';

export type UsageCount = Exclude<keyof DB['usage_hours'], (typeof TABLES.usage_hours.key)[number]>;

const KEY: readonly string[] = TABLES.usage_hours.key;

/** What is counted of each hour, model and key: every column of `usage_hours` beside its key. */
export const USAGE_COUNTS = TABLES.usage_hours.columns.filter(
  (column): column is UsageCount => !KEY.includes(column),
);

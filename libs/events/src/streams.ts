import type { ModelKey, WorkerId } from '#domain/ids.js';

/** Names of streams. The category is everything before the first dash. */
export const streams = {
  worker: (id: WorkerId): string => `worker-${id}`,
  calls: (key: ModelKey): string => `calls-${key}`,
  history: (id: WorkerId, key: ModelKey): string => `history-${id}~${key}`,
  catalog: (id: WorkerId): string => `catalog-${id}`,
  model: (key: ModelKey): string => `model-${key}`,
  /** `fleet`, a worker id, or `<workerId>~<modelKey>`. */
  settings: (scope: string): string => `settings-${scope}`,
  key: (keyId: string): string => `key-${keyId}`,
  operator: (id: WorkerId): string => `operator-${id}`,
  pull: (id: WorkerId): string => `pull-${id}`,
  readings: (id: WorkerId): string => `readings-${id}`,
  apis: 'fleet-apis',
  whatIf: 'fleet-what-if',
  identity: 'log-identity',
} as const;

/** Splits `history-<workerId>~<modelKey>`. A worker id holds no `~`; a key may hold anything. */
export function parseHistoryStream(stream: string): { workerId: WorkerId; modelKey: ModelKey } | undefined {
  const match = /^history-([^~]+)~(.+)$/s.exec(stream);
  return match ? { workerId: match[1] as WorkerId, modelKey: match[2] as ModelKey } : undefined;
}

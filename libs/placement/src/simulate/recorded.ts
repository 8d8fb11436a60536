import type { Recorded } from '#domain/events/envelope.js';

/** An event as a log would give it back, for the folds. */
export const recorded = <E>(revision: number, id: string, atMs: number, event: E): Recorded<E> => ({
  event,
  id,
  stream: 'simulated',
  revision,
  position: { commit: 0n, prepare: 0n },
  metadata: {
    $correlationId: id,
    $causationId: id,
    at: new Date(atMs).toISOString(),
    by: 'simulation',
    schemaVersion: 1,
  },
});

import type { WorkerId } from '#domain/ids.js';

export { memo } from '#domain/memo.js';

/** More workers than any fleet has; beyond it everything is worked out anew once. */
const MOST_WORKERS = 4096;

/**
 * A function of a worker's state that keeps its result for the last state of each worker: decisions are made on the
 * newest one, again and again. A weak table of all states would cost the collector more than it saves, since a state
 * lives as long as it takes until the next event.
 * @param partOf the part of the state that the result is made from
 * @param make given the worker's last result too: where it still holds, giving it back keeps it the same object
 */
export function lastOfWorker<W extends { readonly workerId: WorkerId }, V>(
  partOf: (worker: W) => object,
  make: (worker: W, last: V | undefined) => V,
): (worker: W) => V {
  const last = new Map<WorkerId, { part: object; value: V }>();
  return (worker) => {
    const part = partOf(worker);
    const known = last.get(worker.workerId);
    if (known?.part === part) return known.value;
    const value = make(worker, known?.value);
    if (known) {
      known.part = part;
      known.value = value;
    } else {
      if (last.size >= MOST_WORKERS) last.clear();
      last.set(worker.workerId, { part, value });
    }
    return value;
  };
}

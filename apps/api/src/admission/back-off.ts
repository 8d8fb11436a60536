import type { DecisionId, ModelKey, WorkerId } from '#domain/ids.js';
import type { Fleet } from '../fleet/fleet.js';

const FIRST_MS = 200;
const LAST_MS = 10_000;

/**
 * A decision that the worker closed, or whose eviction failed, is taken again, but not at once and not without end: the
 * worker sees something that this fold does not, until it says so.
 */
export class BackOff {
  readonly #until = new Map<string, { atMs: number; times: number; why: string }>();
  readonly #modelOf = new Map<DecisionId, ModelKey>();
  readonly #now: () => number;

  constructor(fleet: Fleet, now: () => number) {
    this.#now = now;
    fleet.listen({
      onWorkerEvent: ({ event }, { workerId, openDecisions }) => {
        if (event.type === 'PlacementDecided') {
          this.#modelOf.set(event.data.decisionId, event.data.modelKey);
        } else if (event.type === 'DecisionClosed') {
          this.#again(workerId, event.data.decisionId, event.data.reason);
        } else if (event.type === 'EvictionFailed') {
          if (event.data.decisionId) this.#again(workerId, event.data.decisionId, event.data.message);
        } else if (event.type === 'ResidentReady' || event.type === 'LoadFailed') {
          for (const [id, key] of this.#modelOf) {
            if (openDecisions.has(id)) continue;
            this.#modelOf.delete(id);
            if (event.type === 'ResidentReady') this.#until.delete(`${workerId}|${key}`);
          }
        }
      },
    });
  }

  /** What is waited for, while a decision for the pair is not to be taken again yet. */
  of(worker: WorkerId, key: ModelKey): { readonly why: string; readonly inMs: number } | undefined {
    const entry = this.#until.get(`${worker}|${key}`);
    const inMs = (entry?.atMs ?? 0) - this.#now();
    return entry && inMs > 0 ? { why: entry.why, inMs } : undefined;
  }

  #again(worker: WorkerId, id: DecisionId, why: string): void {
    const model = this.#modelOf.get(id);
    if (model === undefined) return;
    this.#modelOf.delete(id);
    const key = `${worker}|${model}`;
    const times = (this.#until.get(key)?.times ?? 0) + 1;
    const delay = Math.min(LAST_MS, FIRST_MS * 2 ** (times - 1));
    this.#until.set(key, { atMs: this.#now() + delay, times, why });
  }
}

import { isTooEarly, type WorkerOffer } from './workers.js';

/** Residents of one model at a time, over all workers, that calls waiting for a slot may bring about. */
export const MOST_RESIDENTS = 2;
/**
 * What a load counts against a wait for a slot. The worker that loads would else be idle, and calls that come later find
 * the slots too: so a second resident pays before its load alone is shorter than the wait.
 */
const LOAD_SHARE = 0.2;

/** Calls of one model that wait while all slots of its residents are taken. */
export interface SlotQueue {
  /** Seconds until each call that is served now is predicted to end. */
  readonly endInSeconds: readonly number[];
  /** How many calls wait. */
  readonly waiting: number;
  /** What each of them is predicted to take. */
  readonly outputSeconds: number;
}

/** Seconds until the last of them is predicted to have a slot: each takes the one that is free first, and holds it. */
export function longestSlotWait({ endInSeconds, waiting, outputSeconds }: SlotQueue): number {
  if (endInSeconds.length === 0) return 0;
  const ends = [...endInSeconds].sort((a, b) => a - b);
  for (let call = 1; call < waiting; call++) {
    // The slots are few, and the one that was free first goes behind those that are free before its next call ends.
    const end = (ends.shift() ?? 0) + outputSeconds;
    const at = ends.findIndex((other) => other > end);
    ends.splice(at < 0 ? ends.length : at, 0, end);
  }
  return ends[0] ?? 0;
}

/**
 * Whether a model whose slots are all taken gets another resident on a worker that has none of it: the last of its waiting
 * calls would wait longer than what the load displaces is worth, with a part of the load.
 */
export const isWorthSecond = (offer: WorkerOffer, slotWaitSeconds: number): boolean =>
  !isTooEarly(offer) && offer.lossSeconds + LOAD_SHARE * offer.readySeconds < slotWaitSeconds;

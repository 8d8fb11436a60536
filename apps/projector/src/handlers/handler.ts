import type { BerthEvent, BerthEventType, Recorded } from '#domain/events/index.js';
import type { Views } from '../rows/views.js';

export type RecordedOf<T extends BerthEventType> = Recorded<Extract<BerthEvent, { type: T }>>;

/**
 * How one type of event changes the views. Handlers only touch rows in memory, in the order of the log; what a resident
 * leads to (its decision, its eviction, and the victims of an open decision) is loaded along with it.
 */
export interface Handler<T extends BerthEventType> {
  /** Names the rows that `apply` reads, so that a batch loads them in one statement per table. */
  readonly touches: (views: Views, recorded: RecordedOf<T>) => void;
  readonly apply: (views: Views, recorded: RecordedOf<T>) => void;
  /**
   * Its rows alone tell a second copy of the event (they are keyed by it, or carry its id). Of all other types the
   * event ids are kept, so that what a retry wrote twice counts once; for calls that would be too many.
   */
  readonly repeatable?: boolean;
}

export type Handlers = { readonly [T in BerthEventType]?: Handler<T> };

/** Unsigned, as text: `numeric` in Postgres. */
export const positionOf = (recorded: Recorded<BerthEvent>): string => recorded.position.commit.toString();

/** The part of a stream's name after its category. */
export const streamId = (recorded: Recorded<BerthEvent>): string =>
  recorded.stream.slice(recorded.stream.indexOf('-') + 1);

/** Seconds from one ISO time to another; null when one is missing. */
export function secondsBetween(
  from: string | null | undefined,
  to: string | null | undefined,
): number | null {
  if (!from || !to) return null;
  const seconds = (Date.parse(to) - Date.parse(from)) / 1000;
  return Number.isFinite(seconds) ? seconds : null;
}

/** Sums figures by device, in the order in which devices first come. */
export function byDevice(
  terms: readonly { readonly deviceId: string; readonly bytes?: number }[],
): { deviceId: string; bytes: number }[] {
  const sums = new Map<string, number>();
  for (const term of terms) sums.set(term.deviceId, (sums.get(term.deviceId) ?? 0) + (term.bytes ?? 0));
  return [...sums].map(([deviceId, bytes]) => ({ deviceId, bytes }));
}

export const sumBytes = (terms: readonly { readonly bytes?: number }[]): number =>
  terms.reduce((sum, term) => sum + (term.bytes ?? 0), 0);

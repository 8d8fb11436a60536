import type { PairHistory } from '#domain/history/history.js';
import type { DeviceId } from '#domain/ids.js';
import { memo } from './memo.js';

/** What a process takes on a device by itself. */
export interface ProcessFigure {
  readonly bytes: number;
  readonly eventId: string;
  readonly at: string;
}

/** The process figure that was measured last with any model, by `processKey`. */
export interface ProcessFigures {
  get(key: string): ProcessFigure | undefined;
}

export const processKey = (deviceId: DeviceId, engineBuild: string): string => `${deviceId}|${engineBuild}`;

/** The latest process figure of each device and engine build over all models of a worker, gathered when first asked. */
export function processFigures(histories: Iterable<PairHistory>): ProcessFigures {
  let gathered: ReadonlyMap<string, ProcessFigure> | undefined;
  return {
    get: (key) => (gathered ??= gather(histories)).get(key),
  };
}

/**
 * The same over a map of histories and one of them besides. A map that holds the very histories that it held at the
 * last call, which is seen by looking at each once, is not gathered again.
 */
export function processFiguresOf(
  histories: ReadonlyMap<unknown, PairHistory>,
  own: PairHistory,
): ProcessFigures {
  const others = gatheredOf(histories);
  const mine = figuresOf(own);
  return {
    get: (key) => {
      const a = others.get(key);
      const b = mine.get(key);
      return a && b ? (isLater(b, a) ? b : a) : (a ?? b);
    },
  };
}

interface Gathered {
  readonly from: readonly PairHistory[];
  readonly figures: ReadonlyMap<string, ProcessFigure>;
}

const lastGathered = new WeakMap<ReadonlyMap<unknown, PairHistory>, Gathered>();

function gatheredOf(histories: ReadonlyMap<unknown, PairHistory>): ReadonlyMap<string, ProcessFigure> {
  const last = lastGathered.get(histories);
  if (last && holdsTheSame(histories, last.from)) return last.figures;
  const from = [...histories.values()];
  const figures = gather(from);
  lastGathered.set(histories, { from, figures });
  return figures;
}

function holdsTheSame(histories: ReadonlyMap<unknown, PairHistory>, last: readonly PairHistory[]): boolean {
  if (histories.size !== last.length) return false;
  let at = 0;
  for (const history of histories.values()) if (history !== last[at++]) return false;
  return true;
}

function gather(histories: Iterable<PairHistory>): ReadonlyMap<string, ProcessFigure> {
  const latest = new Map<string, ProcessFigure>();
  for (const history of histories) {
    for (const [key, figure] of figuresOf(history)) {
      const before = latest.get(key);
      if (!before || isLater(figure, before)) latest.set(key, figure);
    }
  }
  return latest;
}

/** Those of one model. */
const figuresOf = memo((history: PairHistory): ReadonlyMap<string, ProcessFigure> => {
  const made = new Map<string, ProcessFigure>();
  for (const { value, eventId, at } of history.measured.values()) {
    for (const device of value.byDevice) {
      const key = processKey(device.deviceId, value.class.engineBuild);
      const figure = { bytes: device.processBytes, eventId, at };
      const before = made.get(key);
      if (!before || isLater(figure, before)) made.set(key, figure);
    }
  }
  return made;
});

const isLater = (a: ProcessFigure, b: ProcessFigure): boolean =>
  a.at > b.at || (a.at === b.at && a.eventId > b.eventId);

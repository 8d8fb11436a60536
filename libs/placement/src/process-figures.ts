import type { PairHistory } from '#domain/history/history.js';
import type { DeviceId } from '#domain/ids.js';
import { memo } from './memo.js';

/** What a process takes on a device by itself. */
export interface ProcessFigure {
  readonly bytes: number;
  readonly eventId: string;
  readonly at: string;
}

/** The process figure of a device and engine build that was measured last with any model. */
export interface ProcessFigures {
  of(deviceId: DeviceId, engineBuild: string): ProcessFigure | undefined;
}

export const NO_PROCESS_FIGURES: ProcessFigures = { of: () => undefined };

const processKey = (deviceId: DeviceId, engineBuild: string): string => `${deviceId}|${engineBuild}`;

/** The latest process figure of each device and engine build over all models of a worker, gathered when first asked. */
export function processFigures(histories: Iterable<PairHistory>): ProcessFigures {
  let gathered: ReadonlyMap<string, ProcessFigure> | undefined;
  return {
    of: (deviceId, build) => (gathered ??= gather(histories)).get(processKey(deviceId, build)),
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
  // A decision asks for the same few a hundred times: an entry of a few devices is found without making its key.
  const asked: {
    readonly deviceId: DeviceId;
    readonly build: string;
    readonly figure: ProcessFigure | undefined;
  }[] = [];
  return {
    of: (deviceId, build) => {
      for (const known of asked)
        if (known.deviceId === deviceId && known.build === build) return known.figure;
      const key = processKey(deviceId, build);
      const a = others.get(key);
      const b = mine.get(key);
      const figure = a && b ? (isLater(b, a) ? b : a) : (a ?? b);
      asked.push({ deviceId, build, figure });
      return figure;
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

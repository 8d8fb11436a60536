import type { StreamFold } from '../decider.js';
import type { Recorded } from '../events/envelope.js';
import type { DataOf, ReadingsEvent } from '../events/index.js';
import type { WorkerId } from '../ids.js';

/** The recent readings of one worker, oldest first. */
export interface ReadingsState {
  readonly workerId: WorkerId;
  readonly readings: readonly DataOf<'DevicesRead'>[];
  readonly revision: number;
}

/** An hour of one reading in 10 s. */
const KEPT = 360;

export const initialReadings = (workerId: WorkerId): ReadingsState => ({
  workerId,
  readings: [],
  revision: -1,
});

/** Folds one event of `readings-<workerId>`. */
export function evolveReadings(state: ReadingsState, recorded: Recorded<ReadingsEvent>): ReadingsState {
  if (recorded.revision <= state.revision) return state;
  // Written twice by a retry.
  const { takenAt } = recorded.event.data;
  if (state.readings.some((reading) => reading.takenAt === takenAt))
    return { ...state, revision: recorded.revision };
  return {
    ...state,
    revision: recorded.revision,
    readings: [...state.readings, recorded.event.data].slice(-KEPT),
  };
}

export const readingsFold = (workerId: WorkerId): StreamFold<ReadingsState, ReadingsEvent> => ({
  version: 2,
  initial: () => initialReadings(workerId),
  evolve: evolveReadings,
});

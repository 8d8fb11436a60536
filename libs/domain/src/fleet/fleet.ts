import type { StreamFold } from '../decider.js';
import type { Recorded } from '../events/envelope.js';
import type { FleetEvent } from '../events/fleet-events.js';
import type { ApiId } from '../ids.js';

export interface KnownApi {
  readonly apiId: ApiId;
  readonly host: string;
  readonly bootId: string;
  readonly pid: number;
  readonly pidStartTicks?: number;
  readonly agentLine: string;
  readonly startedAt: string;
  /** Position of its `ApiStarted`, commit part, as text: its calls come after it. */
  readonly startedPosition: string;
}

/** The api processes that have started and neither stopped nor been found lost. */
export interface FleetState {
  readonly apis: ReadonlyMap<ApiId, KnownApi>;
  readonly revision: number;
}

export const initialFleet = (): FleetState => ({ apis: new Map(), revision: -1 });

/** Folds one event of `fleet-apis`. */
export function evolveFleet(state: FleetState, recorded: Recorded<FleetEvent>): FleetState {
  if (recorded.revision <= state.revision) return state;
  const { event, revision, position } = recorded;
  const apis = new Map(state.apis);
  switch (event.type) {
    case 'ApiStarted': {
      const { version: _version, ...known } = event.data;
      // Written twice by a retry: its calls come after the first.
      if (apis.has(known.apiId)) break;
      apis.set(event.data.apiId, { ...known, startedPosition: String(position.commit) });
      break;
    }
    case 'ApiStopped':
    case 'ApiLost':
      apis.delete(event.data.apiId);
      break;
  }
  return { apis, revision };
}

export const fleetFold: StreamFold<FleetState, FleetEvent> = {
  version: 2,
  initial: initialFleet,
  evolve: evolveFleet,
};

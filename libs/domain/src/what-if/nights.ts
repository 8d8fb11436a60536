import type { StreamFold } from '../decider.js';
import type { Recorded } from '../events/envelope.js';
import type { WhatIfEvent } from '../events/what-if-events.js';

/** The nights that were summarised. */
export interface WhatIfNights {
  /** The last one; a day that is not after it needs no summary. */
  readonly lastDay?: string;
  readonly revision: number;
}

export const initialNights = (): WhatIfNights => ({ revision: -1 });

/** Folds one event of `fleet-what-if`. Dates are compared as text. */
export function evolveNights(state: WhatIfNights, { event, revision }: Recorded<WhatIfEvent>): WhatIfNights {
  if (revision <= state.revision) return state;
  const { day } = event.data;
  return { lastDay: state.lastDay !== undefined && state.lastDay > day ? state.lastDay : day, revision };
}

export const nightsFold: StreamFold<WhatIfNights, WhatIfEvent> = {
  version: 1,
  initial: initialNights,
  evolve: evolveNights,
};

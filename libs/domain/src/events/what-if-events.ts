import type { ApiId } from '../ids.js';
import type { WhatIfFigures, WhatIfLeast } from '../wire/what-if.js';
import type { EventOf } from './envelope.js';

/** Stream `fleet-what-if`: what the calls of each day would have met otherwise, computed once a night by one of the apis. */
export type WhatIfEvent = EventOf<
  'WhatIfSummarised',
  {
    /** The local date of the night that ended it: `2026-01-05`. */
    readonly day: string;
    readonly from: string;
    readonly to: string;
    readonly calls: number;
    /** Calls that no placement would have changed. */
    readonly leftOut: number;
    /** Decisions that were made again, and how many came out the same. */
    readonly decisions: number;
    readonly identical: number;
    readonly really: WhatIfFigures;
    /** The same calls on the same hardware, simulated. */
    readonly asItWas: WhatIfFigures;
    /** With more memory; empty where none would help. */
    readonly changes: readonly {
      readonly name: string;
      readonly figures: WhatIfFigures;
      readonly loadsSaved: number;
    }[];
    readonly least: WhatIfLeast;
    readonly sentence: string;
    readonly apiId: ApiId;
  }
>;

import type { StreamFold } from '../decider.js';
import type { CallEvent } from '../events/call-events.js';
import type { Recorded } from '../events/envelope.js';
import type { ModelKey } from '../ids.js';

/** One finished call, as placement needs it. Unknown figures are left out. */
export interface FinishedCall {
  readonly receivedAtMs: number;
  readonly promptTokens?: number;
  readonly outputTokens?: number;
  readonly promptBytes?: number;
  readonly promptMsPerToken?: number;
  readonly decodeMsPerToken?: number;
  /** Seconds between queued and decided or ready, without the load. */
  readonly waitSeconds?: number;
}

/** The recent calls of one model: its last 20 finished ones and when calls came. */
export interface CallHistory {
  readonly modelKey: ModelKey;
  readonly finished: readonly FinishedCall[];
  /** Arrival times in ms since 1970, oldest first, at most the last 64. */
  readonly arrivalsMs: readonly number[];
  readonly firstArrivalMs?: number;
  readonly calls: number;
  readonly revision: number;
}

const KEPT_FINISHED = 20;
const KEPT_ARRIVALS = 64;
/** Above this a decode rate is a bad reading, and is not used. */
const MAX_DECODE_PER_SECOND = 5000;

export const initialCalls = (key: ModelKey): CallHistory => ({
  modelKey: key,
  finished: [],
  arrivalsMs: [],
  calls: 0,
  revision: -1,
});

/** Folds one event of `calls-<modelKey>`. */
export function evolveCalls(state: CallHistory, recorded: Recorded<CallEvent>): CallHistory {
  if (recorded.revision <= state.revision) return state;
  const { event, revision } = recorded;
  switch (event.type) {
    case 'CallStarted': {
      const at = Date.parse(event.data.receivedAt);
      return {
        ...state,
        revision,
        calls: state.calls + 1,
        arrivalsMs: [...state.arrivalsMs, at].slice(-KEPT_ARRIVALS),
        firstArrivalMs: state.firstArrivalMs ?? at,
      };
    }
    case 'CallFinished': {
      if (event.data.outcome !== 'completed') return { ...state, revision };
      const { tokens, timings, stamps } = event.data;
      const decode = decodeMsPerToken(tokens.output, timings.decodeMs);
      const finished: FinishedCall = {
        receivedAtMs: Date.parse(stamps.receivedAt),
        ...(tokens.prompt === undefined ? {} : { promptTokens: tokens.prompt }),
        ...(tokens.output === undefined ? {} : { outputTokens: tokens.output }),
        ...(tokens.prompt && timings.promptMs !== undefined
          ? { promptMsPerToken: timings.promptMs / tokens.prompt }
          : {}),
        ...(decode === undefined ? {} : { decodeMsPerToken: decode }),
      };
      return { ...state, revision, finished: [...state.finished, finished].slice(-KEPT_FINISHED) };
    }
  }
}

/** Milliseconds per output token: decodeMs ÷ (output − 1); none for fewer than two tokens or a bad reading. */
export function decodeMsPerToken(
  output: number | undefined,
  decodeMs: number | undefined,
): number | undefined {
  if (output === undefined || decodeMs === undefined || output < 2) return undefined;
  const ms = decodeMs / (output - 1);
  return ms * MAX_DECODE_PER_SECOND < 1000 ? undefined : ms;
}

export const callsFold = (key: ModelKey): StreamFold<CallHistory, CallEvent> => ({
  version: 1,
  initial: () => initialCalls(key),
  evolve: evolveCalls,
});

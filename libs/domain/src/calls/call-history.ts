import type { StreamFold } from '../decider.js';
import type { CallEvent, CallStamps } from '../events/call-events.js';
import type { Recorded } from '../events/envelope.js';
import type { CallId, ModelKey } from '../ids.js';

/** One finished call, as placement needs it. Unknown figures are left out. */
export interface FinishedCall {
  readonly receivedAtMs: number;
  readonly promptTokens?: number;
  readonly outputTokens?: number;
  readonly promptBytes?: number;
  readonly promptMsPerToken?: number;
  readonly decodeMsPerToken?: number;
  /** What it waited for a place or a slot, without the load of its model; 0 for one that came straight through. */
  readonly waitSeconds?: number;
}

/** How long a resident may be idle after a call that said so. */
export interface KeepAlive {
  readonly callId: CallId;
  readonly seconds: number;
}

/** The recent calls of one model: its last 20 finished ones and when calls came. */
export interface CallHistory {
  readonly modelKey: ModelKey;
  readonly finished: readonly FinishedCall[];
  /** Arrival times in ms since 1970, oldest first, at most the last 64. */
  readonly arrivalsMs: readonly number[];
  readonly firstArrivalMs?: number;
  readonly calls: number;
  /** What the call that came last said of it; absent when it said nothing. */
  readonly keepAlive?: KeepAlive;
  /** When the last call that has ended did so. */
  readonly lastEndedAtMs?: number;
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
      const { callId, idleUnloadSeconds } = event.data;
      const { keepAlive: _before, ...rest } = state;
      return {
        ...rest,
        ...(idleUnloadSeconds === undefined ? {} : { keepAlive: { callId, seconds: idleUnloadSeconds } }),
        revision,
        calls: state.calls + 1,
        arrivalsMs: [...state.arrivalsMs, at].slice(-KEPT_ARRIVALS),
        firstArrivalMs: state.firstArrivalMs ?? at,
      };
    }
    case 'CallFinished': {
      const lastEndedAtMs = Math.max(state.lastEndedAtMs ?? 0, Date.parse(event.data.stamps.finishedAt));
      if (event.data.outcome !== 'completed') return { ...state, lastEndedAtMs, revision };
      const { tokens, timings, stamps } = event.data;
      const decode = decodeMsPerToken(tokens.output, timings.decodeMs);
      const waitSeconds = waitSecondsOf(stamps);
      const finished: FinishedCall = {
        receivedAtMs: Date.parse(stamps.receivedAt),
        ...(waitSeconds === undefined ? {} : { waitSeconds }),
        ...(tokens.prompt === undefined ? {} : { promptTokens: tokens.prompt }),
        ...(tokens.output === undefined ? {} : { outputTokens: tokens.output }),
        ...(tokens.prompt && timings.promptMs !== undefined
          ? { promptMsPerToken: timings.promptMs / tokens.prompt }
          : {}),
        ...(decode === undefined ? {} : { decodeMsPerToken: decode }),
      };
      return {
        ...state,
        lastEndedAtMs,
        revision,
        finished: [...state.finished, finished].slice(-KEPT_FINISHED),
      };
    }
  }
}

/**
 * Seconds from its place in the queue to its engine, without the load between decision and readiness: 0 for a call that
 * never queued, undefined for one that was never forwarded.
 */
export function waitSecondsOf(stamps: CallStamps): number | undefined {
  const { queuedAt, decidedAt, readyAt, forwardedAt } = stamps;
  if (forwardedAt === undefined) return undefined;
  if (queuedAt === undefined) return 0;
  const load = decidedAt === undefined || readyAt === undefined ? 0 : msBetween(decidedAt, readyAt);
  return Math.max(0, msBetween(queuedAt, forwardedAt) - load) / 1000;
}

const msBetween = (from: string, to: string): number => Math.max(0, Date.parse(to) - Date.parse(from));

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
  version: 2,
  initial: () => initialCalls(key),
  evolve: evolveCalls,
});

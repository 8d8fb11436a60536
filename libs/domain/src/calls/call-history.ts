import { onceEach, type StreamFold } from '../decider.js';
import type { CallEvent, CallEventData, CallStamps } from '../events/call-events.js';
import type { Recorded } from '../events/envelope.js';
import type { CallId, ModelKey } from '../ids.js';
import { memo } from '../memo.js';
import { median } from '../median.js';

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
  /** The last call of an intent after which contexts are probed. */
  readonly probing?: { readonly callId: CallId; readonly atMs: number };
  /** Context that the last 20 calls asked for: their prompt by its bytes, and what they may say. */
  readonly wanted: readonly { readonly atMs: number; readonly tokens: number }[];
  /** When the last call that has ended did so. */
  readonly lastEndedAtMs?: number;
  /** Ids of the last events of the stream: one that a retry wrote twice counts once. */
  readonly seen: readonly string[];
  readonly revision: number;
}

const KEPT_FINISHED = 20;
const KEPT_ARRIVALS = 64;
/** Intents of calls after which a model's contexts are probed. */
const PROBING_INTENTS: ReadonlySet<string> = new Set(['grading', 'smoke-test', 'warmup']);
/** Text bytes of one token, before anything counted them. */
export const BYTES_PER_TOKEN = 4;
/** Above this a decode rate is a bad reading, and is not used. */
const MAX_DECODE_PER_SECOND = 5000;

export const initialCalls = (key: ModelKey): CallHistory => ({
  modelKey: key,
  finished: [],
  arrivalsMs: [],
  wanted: [],
  calls: 0,
  seen: [],
  revision: -1,
});

/** Folds one event of `calls-<modelKey>`. */
export const evolveCalls = onceEach((state: CallHistory, { event }: Recorded<CallEvent>) =>
  foldCalls(state, [event]),
);

/**
 * Folds events that follow one another, each of them new. Of many only what is kept is looked at: a model that is called
 * thousands of times a second costs its history next to nothing.
 */
export function foldCalls(state: CallHistory, events: readonly CallEvent[]): CallHistory {
  const started = events.filter((event) => event.type === 'CallStarted').map(({ data }) => data);
  const ended = events.filter((event) => event.type === 'CallFinished').map(({ data }) => data);
  const completed = ended.filter(({ outcome }) => outcome === 'completed').slice(-KEPT_FINISHED);
  return {
    ...(started.length === 0 ? state : withStarted(state, started)),
    ...(ended.length === 0 ? {} : { lastEndedAtMs: lastEnd(state, ended) }),
    finished: [...state.finished, ...completed.map(finishedCall)].slice(-KEPT_FINISHED),
    revision: state.revision + events.length,
  };
}

function withStarted(state: CallHistory, started: readonly CallEventData<'CallStarted'>[]): CallHistory {
  const { keepAlive: _before, ...rest } = state;
  const arrivalsMs = started.slice(-KEPT_ARRIVALS).map(({ receivedAt }) => Date.parse(receivedAt));
  const [first] = started;
  const firstArrivalMs = state.firstArrivalMs ?? (first && Date.parse(first.receivedAt));
  const last = started.at(-1);
  const wanted = started.slice(-KEPT_FINISHED).map(({ receivedAt, promptBytes, maxTokens }) => ({
    atMs: Date.parse(receivedAt),
    tokens: Math.ceil(promptBytes / BYTES_PER_TOKEN) + (maxTokens ?? 0),
  }));
  const probing = started.findLast(({ intent }) => intent !== undefined && PROBING_INTENTS.has(intent));
  return {
    ...rest,
    ...(probing ? { probing: { callId: probing.callId, atMs: Date.parse(probing.receivedAt) } } : {}),
    ...(last?.idleUnloadSeconds === undefined
      ? {}
      : { keepAlive: { callId: last.callId, seconds: last.idleUnloadSeconds } }),
    ...(firstArrivalMs === undefined ? {} : { firstArrivalMs }),
    calls: state.calls + started.length,
    wanted: [...state.wanted, ...wanted].slice(-KEPT_FINISHED),
    arrivalsMs: [...state.arrivalsMs, ...arrivalsMs].slice(-KEPT_ARRIVALS),
  };
}

/** ISO times in UTC order as their text does. */
function lastEnd(state: CallHistory, ended: readonly CallEventData<'CallFinished'>[]): number {
  const last = ended.reduce((most, { stamps }) => (stamps.finishedAt > most ? stamps.finishedAt : most), '');
  return Math.max(state.lastEndedAtMs ?? 0, Date.parse(last));
}

/** Median over the last 20 calls of text bytes ÷ prompt tokens; undefined before any was counted. */
export const bytesPerToken = memo(({ finished }: CallHistory): number | undefined =>
  median(
    finished.flatMap(({ promptBytes, promptTokens }) =>
      promptBytes && promptTokens ? promptBytes / promptTokens : [],
    ),
  ),
);

function finishedCall({ tokens, timings, stamps, promptBytes }: CallEventData<'CallFinished'>): FinishedCall {
  const decode = decodeMsPerToken(tokens.output, timings.decodeMs);
  const waitSeconds = waitSecondsOf(stamps);
  return {
    receivedAtMs: Date.parse(stamps.receivedAt),
    ...(waitSeconds === undefined ? {} : { waitSeconds }),
    ...(promptBytes === undefined ? {} : { promptBytes }),
    ...(tokens.prompt === undefined ? {} : { promptTokens: tokens.prompt }),
    ...(tokens.output === undefined ? {} : { outputTokens: tokens.output }),
    ...(tokens.prompt && timings.promptMs !== undefined
      ? { promptMsPerToken: timings.promptMs / tokens.prompt }
      : {}),
    ...(decode === undefined ? {} : { decodeMsPerToken: decode }),
  };
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
  version: 3,
  initial: () => initialCalls(key),
  evolve: evolveCalls,
});

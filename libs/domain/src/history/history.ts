import { onceEach, type StreamFold } from '../decider.js';
import type { Recorded } from '../events/envelope.js';
import type { HistoryEvent, HistoryEventData } from '../events/history-events.js';
import type { ModelKey, WorkerId } from '../ids.js';
import { classKey, type PlacementClass } from '../placement-terms.js';

/** A figure and the event that it came from. */
export interface Fact<T> {
  readonly value: T;
  readonly eventId: string;
  readonly at: string;
}

/** What is known of one model on one worker. Keys are those of `classKey`. */
export interface PairHistory {
  readonly workerId: WorkerId;
  readonly modelKey: ModelKey;
  readonly projected: ReadonlyMap<string, Fact<HistoryEventData<'LoadProjected'>>>;
  /** The last measurement of each class. */
  readonly measured: ReadonlyMap<string, Fact<HistoryEventData<'LoadMeasured'>>>;
  /** Load seconds by class, oldest first, at most the last 20. */
  readonly loadSeconds: ReadonlyMap<string, readonly number[]>;
  /** Windows that were refused, by class without its context: the smallest that failed with nothing larger since. */
  readonly barred: ReadonlyMap<string, BarredWindow>;
  /** What probing came to, by class: whether it was there, and how far its cache was filled. */
  readonly probed: ReadonlyMap<string, { readonly ok: boolean; readonly filledTokens?: number }>;
  /** Figures of the last 20 calls by class, oldest first. */
  readonly serving: ReadonlyMap<string, readonly ServingFigures[]>;
  /** Ids of the last events of the stream: one that a retry wrote twice counts once. */
  readonly seen: readonly string[];
  readonly revision: number;
}

export type ServingFigures = Pick<
  HistoryEventData<'ServingMeasured'>,
  'tokensHeld' | 'kvBytes' | 'promptMsPerToken' | 'decodeMsPerToken'
>;

/** A refused window bars every window at or above it, under the same engine build and limits and no more room. */
export interface BarredWindow {
  readonly contextTokens: number;
  readonly reason: string;
  readonly roomBytes: readonly { readonly deviceId: string; readonly bytes?: number }[];
  /** Under other limits nothing is known of it. */
  readonly limits?: readonly { readonly deviceId: string; readonly bytes: number }[];
  readonly eventId: string;
}

const KEPT = 20;

export const initialHistory = (workerId: WorkerId, modelKey: ModelKey): PairHistory => ({
  workerId,
  modelKey,
  projected: new Map(),
  measured: new Map(),
  loadSeconds: new Map(),
  barred: new Map(),
  probed: new Map(),
  serving: new Map(),
  seen: [],
  revision: -1,
});

/** A class without its window: what a refused window bars. */
export const windowlessKey = (c: PlacementClass): string => classKey({ ...c, contextTokens: 0 });

/** Folds one event of `history-<workerId>~<modelKey>`. */
export const evolveHistory = onceEach(apply);

function apply(state: PairHistory, recorded: Recorded<HistoryEvent>): PairHistory {
  const { event, id, metadata } = recorded;
  const fact = <T>(value: T): Fact<T> => ({ value, eventId: id, at: metadata.at });
  switch (event.type) {
    case 'LoadProjected':
      return {
        ...state,
        projected: new Map(state.projected).set(classKey(event.data.class), fact(event.data)),
      };
    case 'LoadMeasured': {
      const key = classKey(event.data.class);
      const seconds = [...(state.loadSeconds.get(key) ?? []), event.data.seconds].slice(-KEPT);
      return {
        ...state,
        measured: new Map(state.measured).set(key, fact(event.data)),
        loadSeconds: new Map(state.loadSeconds).set(key, seconds),
        barred: unbar(state.barred, event.data.class),
      };
    }
    case 'LoadRefusedByEngine': {
      if (event.data.failure !== 'out-of-memory') return state;
      const { message: reason, roomBytes, limits } = event.data;
      return {
        ...state,
        barred: bar(state.barred, event.data.class, { reason, roomBytes, eventId: id, limits }),
      };
    }
    case 'ContextProbed': {
      const { ok, filledTokens, reason = 'refused', failure, roomBytes, limits } = event.data;
      const refused = !ok && (failure === undefined || failure === 'out-of-memory');
      return {
        ...state,
        probed: new Map(state.probed).set(classKey(event.data.class), {
          ok,
          ...(filledTokens === undefined ? {} : { filledTokens }),
        }),
        barred: ok
          ? unbar(state.barred, event.data.class)
          : refused
            ? bar(state.barred, event.data.class, { reason, roomBytes, eventId: id, limits })
            : state.barred,
      };
    }
    case 'ServingMeasured': {
      const { tokensHeld, kvBytes, promptMsPerToken, decodeMsPerToken } = event.data;
      const figures: ServingFigures = {
        tokensHeld,
        ...(kvBytes === undefined ? {} : { kvBytes }),
        ...(promptMsPerToken === undefined ? {} : { promptMsPerToken }),
        ...(decodeMsPerToken === undefined ? {} : { decodeMsPerToken }),
      };
      const key = classKey(event.data.class);
      const last = [...(state.serving.get(key) ?? []), figures].slice(-KEPT);
      return { ...state, serving: new Map(state.serving).set(key, last) };
    }
  }
}

function bar(
  barred: PairHistory['barred'],
  c: PlacementClass,
  window: Omit<BarredWindow, 'contextTokens' | 'limits'> & {
    readonly limits: BarredWindow['limits'] | undefined;
  },
): PairHistory['barred'] {
  const key = windowlessKey(c);
  const before = barred.get(key);
  if (before && before.contextTokens <= c.contextTokens) return barred;
  const { limits, ...rest } = window;
  return new Map(barred).set(key, {
    contextTokens: c.contextTokens,
    ...rest,
    ...(limits === undefined ? {} : { limits }),
  });
}

/** A success at or above the barred window takes the bar away. */
function unbar(barred: PairHistory['barred'], c: PlacementClass): PairHistory['barred'] {
  const key = windowlessKey(c);
  const before = barred.get(key);
  if (!before || c.contextTokens < before.contextTokens) return barred;
  const copy = new Map(barred);
  copy.delete(key);
  return copy;
}

export const historyFold = (
  workerId: WorkerId,
  modelKey: ModelKey,
): StreamFold<PairHistory, HistoryEvent> => ({
  version: 3,
  initial: () => initialHistory(workerId, modelKey),
  evolve: evolveHistory,
});

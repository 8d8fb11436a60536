import type { CallHistory } from '#domain/calls/call-history.js';
import type { PairHistory, ServingFigures } from '#domain/history/history.js';
import { median } from '#domain/median.js';
import type { ModelKey, ResidentId } from '#domain/ids.js';
import { classKey, type PlacementClass, placementClassOf } from '#domain/placement-terms.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import type { ResidentActivity, Ticket } from './contract.js';
import { loadSeconds } from './loss.js';
import { residentsOfModel } from './charges.js';
import { memo } from './memo.js';

/** How long a call is expected to take, in its three parts. */
export interface Prediction {
  /** What remains of the calls that hold the slot or the room. */
  readonly readyInSeconds: number;
  /** 0 when resident. */
  readonly loadSeconds: number;
  /** Prompt and decode; absent without decode history. */
  readonly outputSeconds?: number;
  /** A ready resident can take the call without a load. */
  readonly resident: boolean;
}

/** Seconds to the end of the output; absent when the output is unknown. */
export const etaSeconds = (p: Prediction): number | undefined =>
  p.outputSeconds === undefined ? undefined : p.readyInSeconds + p.loadSeconds + p.outputSeconds;

/** Medians of a model's last 20 calls. */
export interface Rates {
  readonly promptMsPerToken?: number;
  readonly decodeMsPerToken?: number;
  readonly outputTokens?: number;
}

export const ratesOf = (calls: CallHistory | undefined): Rates => (calls ? measuredRates(calls) : {});

const measuredRates = memo(({ finished }: CallHistory): Rates => {
  const pick = (of: (call: (typeof finished)[number]) => number | undefined): number | undefined =>
    median(finished.flatMap((call) => of(call) ?? []));
  const promptMsPerToken = pick((c) => c.promptMsPerToken);
  const decodeMsPerToken = pick((c) => c.decodeMsPerToken);
  const outputTokens = pick((c) => c.outputTokens);
  return {
    ...(promptMsPerToken === undefined ? {} : { promptMsPerToken }),
    ...(decodeMsPerToken === undefined ? {} : { decodeMsPerToken }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
  };
});

/** Medians of the last 20 calls that a class served; undefined when none was measured. How long answers are is the model's. */
export function ratesOfClass(history: PairHistory, plan: PlacementClass, ofModel: Rates): Rates | undefined {
  if (history.serving.size === 0) return undefined;
  const figures = history.serving.get(keyOf(plan));
  const speeds = figures && speedsOf(figures);
  if (speeds?.decodeMsPerToken === undefined) return undefined;
  return ofModel.outputTokens === undefined ? speeds : { ...speeds, outputTokens: ofModel.outputTokens };
}

const keyOf = memo(classKey);

const speedsOf = memo((figures: readonly ServingFigures[]): Rates => {
  const promptMsPerToken = median(figures.flatMap((f) => f.promptMsPerToken ?? []));
  const decodeMsPerToken = median(figures.flatMap((f) => f.decodeMsPerToken ?? []));
  return {
    ...(promptMsPerToken === undefined ? {} : { promptMsPerToken }),
    ...(decodeMsPerToken === undefined ? {} : { decodeMsPerToken }),
  };
});

/** Output tokens that a call is priced at: the model's median, never above `max_tokens`. */
export const pricedOutputTokens = (rates: Rates, maxTokens: number | undefined): number | undefined =>
  rates.outputTokens === undefined ? maxTokens : Math.min(rates.outputTokens, maxTokens ?? Infinity);

/** Prompt and decode seconds from measured rates; undefined without a decode rate and a count. */
export function outputSeconds(
  rates: Rates,
  ticket: Pick<Ticket, 'promptTokens' | 'maxTokens'>,
): number | undefined {
  const tokens = pricedOutputTokens(rates, ticket.maxTokens);
  if (rates.decodeMsPerToken === undefined || tokens === undefined) return undefined;
  return (ticket.promptTokens * (rates.promptMsPerToken ?? 0) + tokens * rates.decodeMsPerToken) / 1000;
}

/** What `predict` looks at; the api has all of it warm. */
export interface PredictionView {
  readonly worker: WorkerState;
  readonly histories: ReadonlyMap<ModelKey, PairHistory>;
  readonly calls: ReadonlyMap<ModelKey, CallHistory>;
  readonly activity: ReadonlyMap<ResidentId, ResidentActivity>;
  readonly nowMs: number;
}

/** Predicts a call to a model from what was measured: ready, load and output. */
export function predict(
  ticket: Pick<Ticket, 'modelKey' | 'promptTokens' | 'maxTokens'>,
  view: PredictionView,
): Prediction {
  const output = outputSeconds(ratesOf(view.calls.get(ticket.modelKey)), ticket);
  const rest = output === undefined ? {} : { outputSeconds: output };
  const mine = residentsOfModel(view.worker, ticket.modelKey);
  const ready = mine.filter((r) => r.phase === 'ready');
  if (ready.length > 0) {
    const readyInSeconds = Math.min(...ready.map((r) => slotFreeInSeconds(r, view.activity)));
    return { readyInSeconds, loadSeconds: 0, resident: true, ...rest };
  }
  const coming = mine[0];
  if (coming)
    return { readyInSeconds: 0, loadSeconds: remainingLoad(coming, view), resident: false, ...rest };
  return {
    readyInSeconds: 0,
    loadSeconds: usualLoad(view.histories.get(ticket.modelKey)),
    resident: false,
    ...rest,
  };
}

/** The soonest over the workers that could serve it. */
export function soonest(
  ticket: Pick<Ticket, 'modelKey' | 'promptTokens' | 'maxTokens'>,
  views: Iterable<PredictionView>,
): Prediction | undefined {
  let best: Prediction | undefined;
  for (const view of views) {
    const one = predict(ticket, view);
    if (!best || one.readyInSeconds + one.loadSeconds < best.readyInSeconds + best.loadSeconds) best = one;
  }
  return best;
}

/** A call that is served now. */
export interface Ongoing {
  readonly startedAtMs: number;
  readonly promptTokens: number;
  readonly maxTokens?: number;
}

/** When each of a resident's calls is predicted to end, by the medians of its model; unknown without a history. */
export function endsInSeconds(
  calls: CallHistory | undefined,
  ongoing: Iterable<Ongoing>,
  nowMs: number,
): readonly number[] | undefined {
  const rates = ratesOf(calls);
  const ends: number[] = [];
  for (const call of ongoing) {
    const seconds = outputSeconds(rates, call);
    if (seconds === undefined) return undefined;
    ends.push(Math.max(0, seconds - (nowMs - call.startedAtMs) / 1000));
  }
  return ends;
}

/** When the last of them is predicted to end. */
export function freeInSeconds(
  calls: CallHistory | undefined,
  ongoing: Iterable<Ongoing>,
  nowMs: number,
): number | undefined {
  const ends = endsInSeconds(calls, ongoing, nowMs);
  return ends && Math.max(0, ...ends);
}

function slotFreeInSeconds(resident: Resident, activity: ReadonlyMap<ResidentId, ResidentActivity>): number {
  const now = activity.get(resident.residentId);
  return now && now.callsInFlight >= resident.contract.slots ? (now.freeInSeconds ?? 0) : 0;
}

/** What is left of a resident's load; all of it as long as it has not begun. */
export function remainingLoad(resident: Resident, view: Pick<PredictionView, 'histories' | 'nowMs'>): number {
  const history = view.histories.get(resident.modelKey);
  const weights = resident.need.reduce((sum, t) => sum + (t.term === 'weights' ? (t.bytes ?? 0) : 0), 0);
  const { seconds } = loadSeconds(history, placementClassOf(resident.artifact, resident.contract), weights);
  if (resident.loadStartedAt === undefined) return seconds;
  return Math.max(0, seconds - Math.max(0, (view.nowMs - Date.parse(resident.loadStartedAt)) / 1000));
}

/** Median of the last 20 loads of any class; 0 when none was measured. */
const usualLoad = (history: PairHistory | undefined): number => (history ? usualLoadOf(history) : 0);

const usualLoadOf = memo(
  ({ loadSeconds: byClass }: PairHistory): number => median([...byClass.values()].flat().slice(-20)) ?? 0,
);

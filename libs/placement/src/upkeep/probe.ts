import { type PairHistory, windowlessKey } from '#domain/history/history.js';
import { classKey, type PlacementClass, placementClassOf } from '#domain/placement-terms.js';
import type { Resident } from '#domain/worker/state.js';
import { chooseContext, contextTicks } from '../context.js';

export interface ProbeQuestion {
  /** As it was when the call ended: its artifact, rung, KV type and slots are what is probed. */
  readonly resident: Pick<Resident, 'artifact' | 'contract'>;
  readonly trainedTokens: number;
  readonly p99Tokens?: number;
  readonly history: PairHistory;
}

export interface Probe {
  readonly contextTokens: number;
  /** Its cache is to be filled, and was never: what else is known of it does not count. */
  readonly fills: boolean;
}

/**
 * What is still to be probed: the context one tick below, at and above the default, and the one that was asked for. Each
 * has a result once it was loaded, or was refused; the default comes last, and is probed until its cache was filled.
 */
export function probesLeft(question: ProbeQuestion): readonly Probe[] {
  const { resident, trainedTokens, history } = question;
  const ticks = contextTicks(trainedTokens);
  const [standard = trainedTokens] = chooseContext({
    ask: 'auto',
    trainedTokens,
    callTokens: 0,
    ...(question.p99Tokens === undefined ? {} : { p99Tokens: question.p99Tokens }),
  });
  const at = ticks.indexOf(standard);
  const around = [ticks[at - 1], ticks[at + 1], resident.contract.contextTokens].flatMap((t) => t ?? []);
  const klass = placementClassOf(resident.artifact, resident.contract);
  const left = [...new Set(around)]
    .filter((tokens) => tokens !== standard && !hasResult(history, { ...klass, contextTokens: tokens }))
    .map((contextTokens) => ({ contextTokens, fills: false }));
  const filled = isFilled(history, { ...klass, contextTokens: standard });
  return filled ? left : [...left, { contextTokens: standard, fills: true }];
}

/** Loaded, probed, or at or above a context that was refused. */
const hasResult = (history: PairHistory, klass: PlacementClass): boolean =>
  history.measured.has(classKey(klass)) || history.probed.has(classKey(klass)) || isRefused(history, klass);

const isRefused = (history: PairHistory, klass: PlacementClass): boolean =>
  klass.contextTokens >= (history.barred.get(windowlessKey(klass))?.contextTokens ?? Infinity);

/** Filled, or refused when that was tried: a context that cannot be had is not filled. */
const isFilled = (history: PairHistory, klass: PlacementClass): boolean => {
  const probed = history.probed.get(classKey(klass));
  return probed?.filledTokens !== undefined || probed?.ok === false || isRefused(history, klass);
};

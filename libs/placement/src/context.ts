import type { FinishedCall } from '#domain/calls/call-history.js';
import type { BarredWindow } from '#domain/history/history.js';
import type { ContextAsk } from '#domain/placement-terms.js';
import type { Room } from './room.js';
import { FLOOR_TOKENS } from './ask.js';
import { memo } from './memo.js';

/** `auto` takes at least this, or trained when that is smaller. */
export const AUTO_TOKENS = 8192;

/**
 * Contexts that are planned by themselves, rising: 4,096 · 2^k and 3 · 2,048 · 2^k between the floor and trained, and
 * trained itself.
 */
export function contextTicks(trainedTokens: number): readonly number[] {
  const known = keptTicks.get(trainedTokens);
  if (known) return known;
  const floor = Math.min(FLOOR_TOKENS, trainedTokens);
  const ticks = new Set([trainedTokens]);
  for (let power = 1; FLOOR_TOKENS * power <= trainedTokens; power *= 2) {
    ticks.add(FLOOR_TOKENS * power);
    if (6144 * power <= trainedTokens) ticks.add(6144 * power);
  }
  const rising = [...ticks].filter((tick) => tick >= floor && tick > 0).sort((a, b) => a - b);
  if (keptTicks.size >= MOST_TICKS) keptTicks.clear();
  keptTicks.set(trainedTokens, rising);
  return rising;
}

/** Models are trained for a handful of lengths. */
const MOST_TICKS = 64;
const keptTicks = new Map<number, readonly number[]>();

export type ContextState = 'range' | 'point' | 'infeasible';

export interface FeasibleContexts {
  readonly state: ContextState;
  /** Rising. */
  readonly ticks: readonly number[];
}

/** The ticks of a plan that fit and are not barred. */
export function feasibleContexts(
  ticks: readonly number[],
  fits: (contextTokens: number) => boolean,
): FeasibleContexts {
  const feasible = ticks.filter(fits);
  const state = feasible.length > 1 ? 'range' : feasible.length === 1 ? 'point' : 'infeasible';
  return { state, ticks: feasible };
}

/**
 * A refused window bars every window at or above it while the limits are the same and no device has more room than it had
 * then. A device whose room was or is unknown proves nothing.
 */
export function isBarred(
  barred: BarredWindow | undefined,
  contextTokens: number,
  rooms: readonly Room[],
): boolean {
  if (!barred || contextTokens < barred.contextTokens) return false;
  return !roomGrew(barred.roomBytes, rooms) && !limitChanged(barred.limits, rooms);
}

const limitChanged = (limits: BarredWindow['limits'], rooms: readonly Room[]): boolean =>
  limits?.some(
    ({ deviceId, bytes }) => rooms.find((room) => room.deviceId === deviceId)?.limitBytes !== bytes,
  ) ?? false;

/** Whether a device has more room now than it had then. */
export function roomGrew(
  then: readonly { readonly deviceId: string; readonly bytes?: number }[],
  rooms: readonly Room[],
): boolean {
  return then.some(({ deviceId, bytes }) => {
    const now = rooms.find((room) => room.deviceId === deviceId)?.roomBytes;
    return bytes !== undefined && now !== undefined && now > bytes;
  });
}

/** Tokens that a call holds at most, as far as is known: estimated prompt + `max_tokens`. */
export const callTokens = (
  ticket: { readonly promptTokens: number; readonly maxTokens?: number } | undefined,
): number => (ticket ? ticket.promptTokens + (ticket.maxTokens ?? 0) : 0);

/** The p99 (nearest rank) of tokens held over the last 20 calls; undefined without any. */
export const p99TokensHeld = memo((finished: readonly FinishedCall[]): number | undefined => {
  const held = finished
    .slice(-20)
    .flatMap((c) => (c.promptTokens === undefined ? [] : [c.promptTokens + (c.outputTokens ?? 0)]))
    .sort((a, b) => a - b);
  return held[Math.max(0, Math.ceil(0.99 * held.length) - 1)];
});

export interface ContextQuestion {
  readonly ask: ContextAsk;
  readonly trainedTokens: number;
  readonly callTokens: number;
  /** The p99 of tokens held over the model's last 20 calls; absent without any. */
  readonly p99Tokens?: number;
  /** Context of the resident that is replaced: the larger of the two is taken. */
  readonly replacedTokens?: number;
}

/**
 * Contexts to try for a plan, best first. `auto` wants the smallest tick that covers this call and the p99 of the last
 * 20, at least 8,192 (or trained); when that cannot be had, smaller ticks follow down to what this call needs, then
 * to the floor, since an estimate never refuses. A pinned number stands alone.
 */
export function chooseContext(question: ContextQuestion): readonly number[] {
  const { ask, trainedTokens, replacedTokens = 0 } = question;
  if (typeof ask === 'number') return [ask];
  const low = ask === 'auto' ? 0 : ask.min;
  const high = ask === 'auto' ? trainedTokens : Math.min(ask.max, trainedTokens);
  const clamp = (tokens: number): number => Math.min(high, Math.max(low, tokens));
  const covered = Math.max(question.callTokens, question.p99Tokens ?? 0);
  const ticks = [...new Set([...contextTicks(trainedTokens).map(clamp), clamp(replacedTokens)])]
    .filter((tick) => tick >= low && tick <= high && tick > 0)
    .sort((a, b) => a - b);
  const wanted = Math.max(covered, Math.min(AUTO_TOKENS, trainedTokens), replacedTokens);
  const first = ticks.find((tick) => tick >= wanted) ?? ticks.at(-1);
  return ticks.filter((tick) => first !== undefined && tick <= first).reverse();
}

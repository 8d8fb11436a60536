import type { CallHistory } from '#domain/calls/call-history.js';
import type { PlacementDecidedData } from '#domain/events/worker-events.js';
import type { Ask } from '#domain/placement-terms.js';
import type { Resident } from '#domain/worker/state.js';
import { termsByDevice } from '../charges.js';
import { contextTicks } from '../context.js';
import type { EffectiveSettings } from '../settings.js';

/** What is known of a resident whose context may be too small for its calls. */
export interface GrowQuestion {
  readonly resident: Resident;
  readonly trainedTokens: number;
  /** What holds for its model now. */
  readonly ask: Pick<Ask, 'context'>;
  readonly settings: Pick<EffectiveSettings, 'growRoomSeconds' | 'growEverySeconds'>;
  readonly calls: CallHistory;
  readonly callsInFlight: number;
  /** Calls of its model that wait. */
  readonly waiting: number;
  /** What would be decided for its model at so many tokens, its own bytes being credit and nobody evicted. */
  readonly planAt: (tokens: number) => PlacementDecidedData | undefined;
  /** Since when a larger context has had its room, ms since 1970. */
  readonly roomSinceMs?: number;
  readonly nowMs: number;
}

export interface GrowVerdict {
  /** The largest context that a call wanted since the resident is there; undefined when all had enough. */
  readonly wantedTokens?: number;
  /** The context that has room now, with a margin of one tick; undefined when none has. */
  readonly plan?: PlacementDecidedData;
  /** True when it is to be reloaded with that plan now. */
  readonly grows: boolean;
  readonly why: string;
}

/**
 * Whether a resident below its largest feasible context is reloaded with a larger one: a call wanted more, the larger one
 * has had room with a margin of one tick for a while, it was not loaded lately, and nothing is on it.
 */
export function growBack(question: GrowQuestion): GrowVerdict {
  const { resident, settings, nowMs, ask } = question;
  const no = (why: string): GrowVerdict => ({ grows: false, why });
  if (resident.phase !== 'ready' || resident.leaving) return no('it is not there to stay');
  if (resident.kind !== 'chat') return no('its context is fixed');
  if (typeof ask.context === 'number') return no('its context is pinned');
  const wantedTokens = tokensWanted(question);
  if (wantedTokens === undefined) return no('no call wanted more');
  const plan = largerPlan(question, wantedTokens);
  if (!plan)
    return { wantedTokens, grows: false, why: 'no larger context has room with a margin of one tick' };
  const told = { wantedTokens, plan };
  const roomSeconds = (nowMs - (question.roomSinceMs ?? nowMs)) / 1000;
  if (roomSeconds < settings.growRoomSeconds)
    return { ...told, grows: false, why: `there is room since ${Math.floor(roomSeconds)} s` };
  const sinceLoad = (nowMs - Date.parse(resident.readyAt ?? resident.decidedAt)) / 1000;
  if (sinceLoad < settings.growEverySeconds)
    return { ...told, grows: false, why: `it was loaded ${Math.floor(sinceLoad)} s ago` };
  if (question.callsInFlight > 0 || question.waiting > 0)
    return { ...told, grows: false, why: 'it is not idle' };
  return { ...told, grows: true, why: `a call wanted ${wantedTokens} tokens` };
}

/** The most that a call since it is there asked for, or filled its context with; undefined when it was enough. */
function tokensWanted({ resident, calls }: GrowQuestion): number | undefined {
  const has = resident.contract.contextTokens;
  const sinceMs = Date.parse(resident.decidedAt);
  let most = has;
  for (const { atMs, tokens } of calls.wanted) if (atMs >= sinceMs) most = Math.max(most, tokens);
  for (const { receivedAtMs, promptTokens = 0, outputTokens = 0 } of calls.finished) {
    // It ended where the context did (some engines leave the last cell): how much more it wanted is not known.
    if (receivedAtMs >= sinceMs && promptTokens + outputTokens >= has - 1) most = Math.max(most, has + 1);
  }
  return most > has ? most : undefined;
}

/** The smallest context that covers what was wanted, else the largest below it, that has room and a tick to spare. */
function largerPlan(question: GrowQuestion, wantedTokens: number): PlacementDecidedData | undefined {
  const { resident, trainedTokens, ask } = question;
  const most = typeof ask.context === 'object' ? Math.min(trainedTokens, ask.context.max) : trainedTokens;
  const ticks = contextTicks(trainedTokens);
  const larger = ticks.filter((tick) => tick > resident.contract.contextTokens && tick <= most);
  const covering = larger.findIndex((tick) => tick >= wantedTokens);
  const tried = (covering < 0 ? larger : larger.slice(0, covering + 1)).reverse();
  for (const tick of tried) {
    const plan = question.planAt(tick);
    if (plan && hasMargin(question, plan, tick, ticks)) return plan;
  }
  return undefined;
}

/** A tick to spare: the next one would fit as well; above the last, as much again as its cache took for the last step. */
function hasMargin(
  { planAt }: GrowQuestion,
  plan: PlacementDecidedData,
  tick: number,
  ticks: readonly number[],
): boolean {
  const at = ticks.indexOf(tick);
  const next = ticks[at + 1];
  if (next !== undefined) return planAt(next) !== undefined;
  const stepShare = 1 - (ticks[at - 1] ?? 0) / tick;
  const cache = termsByDevice(plan.need.filter(({ term }) => term === 'kv'));
  return [...termsByDevice(plan.need)].every(([deviceId, bytes]) => {
    const room = plan.room.find((r) => r.deviceId === deviceId)?.bytes ?? 0;
    const credit = plan.victims
      .flatMap((victim) => victim.frees)
      .filter((freed) => freed.deviceId === deviceId)
      .reduce((sum, freed) => sum + freed.bytes, 0);
    return bytes + stepShare * (cache.get(deviceId) ?? 0) <= room + credit;
  });
}

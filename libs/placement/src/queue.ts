import type { CallId } from '#domain/ids.js';
import type { Ticket } from './contract.js';
import { compareText } from './charges.js';
import { etaSeconds, type Prediction } from './predict.js';
import type { EffectiveSettings } from './settings.js';

/** α: seconds that each later arrival adds, so that overtaking is bounded. */
export const ALPHA_SECONDS_PER_PLACE = 0.1;
/** `smart`: how long a head that waits for room may be passed by calls to residents. */
export const SMART_HEAD_SECONDS = 30;

/**
 * Tickets in the order in which they are next: foreground before background, overdue ones first, the rest by the
 * predicted end of their output. Tickets of one group keep their order; a model without decode history holds its place.
 */
export function orderQueue(
  tickets: readonly Ticket[],
  predictions: ReadonlyMap<CallId, Prediction>,
  nowMs: number,
  settings: Pick<EffectiveSettings, 'queueOrder' | 'overdueAfterSeconds'>,
): readonly Ticket[] {
  const arrived = [...tickets].sort(byArrival);
  const foreground = arrived.filter((t) => !t.background);
  const background = arrived.filter((t) => t.background);
  const ordered = (part: readonly Ticket[]): readonly Ticket[] => {
    switch (settings.queueOrder) {
      case 'fifo':
        return part;
      case 'smart':
        return smart(part, predictions, nowMs);
      case 'eta': {
        const overdue = part.filter((t) => isOverdue(t, nowMs, settings));
        const rest = part.filter((t) => !isOverdue(t, nowMs, settings));
        return [...overdue, ...byEta(rest, predictions)];
      }
    }
  };
  return [...ordered(foreground), ...ordered(background)];
}

const byArrival = (a: Ticket, b: Ticket): number =>
  a.arrival - b.arrival || a.arrivedAtMs - b.arrivedAtMs || compareText(a.callId, b.callId);

export const waitedSeconds = (ticket: Pick<Ticket, 'arrivedAtMs'>, nowMs: number): number =>
  Math.max(0, (nowMs - ticket.arrivedAtMs) / 1000);

/** Background does not age into the foreground. */
export const isOverdue = (
  ticket: Pick<Ticket, 'arrivedAtMs' | 'background'>,
  nowMs: number,
  settings: Pick<EffectiveSettings, 'overdueAfterSeconds'>,
): boolean => !ticket.background && waitedSeconds(ticket, nowMs) >= settings.overdueAfterSeconds;

/** In order of arrival, but a call to a resident may pass a head that waits for room, until it has waited 30 s. */
function smart(
  part: readonly Ticket[],
  predictions: ReadonlyMap<CallId, Prediction>,
  nowMs: number,
): readonly Ticket[] {
  const isResident = (t: Ticket): boolean => predictions.get(t.callId)?.resident ?? false;
  const head = part.find((t) => !isResident(t));
  if (!head || waitedSeconds(head, nowMs) >= SMART_HEAD_SECONDS) return part;
  const held = new Set<string>();
  const passing: Ticket[] = [];
  const waiting: Ticket[] = [];
  for (const ticket of part) {
    const blocked = ticket.group !== undefined && held.has(ticket.group);
    if (isResident(ticket) && !blocked) passing.push(ticket);
    else {
      waiting.push(ticket);
      if (ticket.group !== undefined) held.add(ticket.group);
    }
  }
  return [...passing, ...waiting];
}

interface Keyed {
  readonly ticket: Ticket;
  /** Absent: it holds the place of its arrival. */
  readonly key?: number;
  readonly place: number;
}

function byEta(part: readonly Ticket[], predictions: ReadonlyMap<CallId, Prediction>): readonly Ticket[] {
  const latest = new Map<string, number>();
  const keyed = part.map((ticket, place): Keyed => {
    const prediction = predictions.get(ticket.callId);
    const eta = prediction ? etaSeconds(prediction) : undefined;
    if (eta === undefined) return { ticket, place };
    const own = eta + ALPHA_SECONDS_PER_PLACE * ticket.arrival;
    // A later call of a group is not before an earlier one: it takes the earlier one's key when that is larger.
    const key = ticket.group === undefined ? own : Math.max(own, latest.get(ticket.group) ?? -Infinity);
    if (ticket.group !== undefined) latest.set(ticket.group, key);
    return { ticket, place, key };
  });
  const holding = keyed.filter((k) => k.key === undefined);
  const moving = keyed
    .filter((k) => k.key !== undefined)
    .sort((a, b) => (a.key ?? 0) - (b.key ?? 0) || a.place - b.place);
  return merge(holding, moving);
}

/** Fills the places from the front: holders at theirs, the others around them, no group member before an earlier one. */
function merge(holding: readonly Keyed[], moving: readonly Keyed[]): readonly Ticket[] {
  const order: Ticket[] = [];
  const left = groupQueues([...holding, ...moving]);
  const isNext = (k: Keyed): boolean => {
    const group = k.ticket.group;
    return group === undefined || left.get(group)?.[0] === k.place;
  };
  const holders = [...holding];
  const movers = [...moving];
  const take = (from: Keyed[], index: number): void => {
    const [k] = from.splice(index, 1);
    if (!k) return;
    order.push(k.ticket);
    if (k.ticket.group !== undefined) left.get(k.ticket.group)?.shift();
  };
  while (holders.length + movers.length > 0) {
    const due = holders.findIndex((k) => k.place <= order.length && isNext(k));
    if (due >= 0) {
      take(holders, due);
      continue;
    }
    const mover = movers.findIndex(isNext);
    if (mover >= 0) take(movers, mover);
    else take(holders, Math.max(0, holders.findIndex(isNext)));
  }
  return order;
}

/** Places of each group's tickets, in order of arrival. */
function groupQueues(keyed: readonly Keyed[]): ReadonlyMap<string, number[]> {
  const groups = new Map<string, number[]>();
  for (const { ticket, place } of [...keyed].sort((a, b) => a.place - b.place)) {
    if (ticket.group === undefined) continue;
    const places = groups.get(ticket.group);
    if (places) places.push(place);
    else groups.set(ticket.group, [place]);
  }
  return groups;
}

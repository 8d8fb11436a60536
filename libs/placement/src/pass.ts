import type { Ticket } from './contract.js';
import { isOverdue } from './queue.js';
import type { EffectiveSettings } from './settings.js';

/** Whose turn it is, for a call that got no slot at once. */
export type Turn<C> =
  /** It may be decided on, beside the queue as it stands. */
  | { readonly kind: 'decide'; readonly queue: readonly Ticket[] }
  /** Background, while so many foreground calls wait. */
  | { readonly kind: 'background'; readonly foreground: number }
  /** Nothing is placed past an overdue call that waits for room. */
  | { readonly kind: 'behind'; readonly overdue: C };

/** What the one who owns the fleet does in a pass. */
export interface PassActs<C> {
  ticketOf(call: C): Ticket;
  settingsOf(call: C): Pick<EffectiveSettings, 'overdueAfterSeconds'>;
  /** Gives it a slot of a resident that serves its model; false when there is none. */
  grant(call: C): boolean;
  /**
   * Looks at a call without a slot: follows what is there already for its model, else keeps to its turn.
   * @returns `waits` when it found no room; `stop` when the queue is another now and all are to be looked at anew
   */
  look(call: C, turn: Turn<C>, place: number): 'waits' | 'settled' | 'stop';
}

/**
 * One pass over the calls in the order of the queue: slots that are free first, then what is to become of the others. A
 * call that is overdue and finds no room keeps those behind it from being placed, so that every wait is bounded.
 */
export function passQueue<C>(order: readonly C[], acts: PassActs<C>, nowMs: number): void {
  let foreground = order.filter((call) => !acts.ticketOf(call).background).length;
  const waiting: C[] = [];
  for (const call of order) {
    const { background } = acts.ticketOf(call);
    if ((background && foreground > 0) || !acts.grant(call)) waiting.push(call);
    else if (!background) foreground -= 1;
  }
  const queue = waiting.map((call) => acts.ticketOf(call));
  let overdue: C | undefined;
  for (const [index, call] of waiting.entries()) {
    const ticket = acts.ticketOf(call);
    const turn: Turn<C> =
      ticket.background && foreground > 0
        ? { kind: 'background', foreground }
        : overdue === undefined
          ? { kind: 'decide', queue }
          : { kind: 'behind', overdue };
    const looked = acts.look(call, turn, index + 1);
    if (looked === 'stop') return;
    if (looked === 'waits' && isOverdue(ticket, nowMs, acts.settingsOf(call))) overdue ??= call;
  }
}

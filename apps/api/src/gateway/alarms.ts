import { type Slotted, SlotList } from '#runtime/slot-list.js';

/** Something that is due at a time on the clock of `performance.now()`. */
export interface Alarm extends Slotted {
  dueAtMs: number;
  /** Called once it is due, a look late at most; to be set again for another time. */
  ring(): void;
}

const LOOK_EVERY_MS = 250;

/**
 * One timer for all that wait. Nearly every call and body is over before it is looked at: a timer for each would be most
 * of what waiting costs.
 */
export class Alarms {
  readonly #all = new SlotList<Alarm>();
  readonly #lookEveryMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(lookEveryMs = LOOK_EVERY_MS) {
    this.#lookEveryMs = lookEveryMs;
  }

  set(alarm: Alarm): void {
    this.#all.add(alarm);
    this.#timer ??= setInterval(() => this.#look(), this.#lookEveryMs).unref();
  }

  clear(alarm: Alarm): void {
    this.#all.delete(alarm);
  }

  #look(): void {
    const now = performance.now();
    for (const alarm of [...this.#all]) {
      if (alarm.dueAtMs > now) continue;
      this.#all.delete(alarm);
      alarm.ring();
    }
    if (this.#all.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

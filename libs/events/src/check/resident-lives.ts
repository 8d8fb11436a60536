import type { BerthEvent, Recorded } from '#domain/events/index.js';
import type { ResidentId } from '#domain/ids.js';
import { RecentIds } from '../recent-ids.js';
import { type Check, type Place, placeOf, type Report } from './violation.js';

const KEPT_LIVES = 50_000;

interface Life {
  readonly last: Place;
  readonly started: boolean;
  readonly outcome?: 'ResidentReady' | 'LoadFailed';
  readonly end?: 'ResidentEvicted' | 'ResidentCrashed' | 'ResidentFoundGone';
  readonly evicting: boolean;
}

/**
 * Invariant 1: one start of a load, then at most one of ready or failed, then at most one end. A load may fail before
 * an engine was started, and its process may be started again until it is ready; only being found gone ends a load that
 * was neither.
 */
export class ResidentLives implements Check {
  readonly #report: Report;
  readonly #lives = new Map<ResidentId, Life>();
  /** Lives that are over are remembered for as long as a repetition is likely; after that one reads as never begun. */
  readonly #over = new RecentIds(KEPT_LIVES, (id) => this.#lives.delete(id as ResidentId));

  constructor(report: Report) {
    this.#report = report;
  }

  take(recorded: Recorded<BerthEvent>): void {
    const { event } = recorded;
    if (event.type === 'LoadStarted') {
      this.#change(event.data.residentId, recorded, (life) => {
        if (life.started) this.#wrong(recorded, 'is started a second time');
        else if (life.outcome ?? life.end)
          this.#wrong(recorded, `is started after its ${life.outcome ?? life.end}`);
        return { started: true };
      });
    } else if (event.type === 'LoadRestarted') {
      this.#change(event.data.residentId, recorded, (life) => {
        if (!life.started) this.#wrong(recorded, 'is started again though no load was started');
        else if (life.outcome ?? life.end)
          this.#wrong(recorded, `is started again after its ${life.outcome ?? life.end}`);
        return {};
      });
    } else if (event.type === 'ResidentReady' || event.type === 'LoadFailed') {
      this.#change(event.data.residentId, recorded, (life) => {
        if (life.outcome) this.#wrong(recorded, `has ${event.type} after ${life.outcome}`);
        else if (life.end) this.#wrong(recorded, `has ${event.type} after its end, ${life.end}`);
        else if (!life.started && event.type === 'ResidentReady')
          this.#wrong(recorded, 'is ready though no load was started');
        return { outcome: event.type };
      });
    } else if (
      event.type === 'ResidentEvicted' ||
      event.type === 'ResidentCrashed' ||
      event.type === 'ResidentFoundGone'
    ) {
      this.#change(event.data.residentId, recorded, (life) => {
        if (life.end) this.#wrong(recorded, `ends a second time (${event.type} after ${life.end})`);
        else if (!life.started) this.#wrong(recorded, `has ${event.type} though no load was started`);
        else if (event.type !== 'ResidentFoundGone' && life.outcome !== 'ResidentReady')
          this.#wrong(recorded, `has ${event.type} though it was never ready`);
        return { end: event.type, evicting: false };
      });
    } else if (event.type === 'EvictionStarted') {
      this.#change(event.data.residentId, recorded, () => ({ evicting: true }));
    } else if (event.type === 'EvictionFailed') {
      this.#change(event.data.residentId, recorded, () => ({ evicting: false }));
    }
  }

  finish(atRest: boolean): void {
    if (!atRest) return;
    for (const [id, life] of this.#lives) {
      if (life.started && !life.outcome && !life.end)
        this.#report(1, life.last, `Resident ${id} is left loading: neither ready nor failed nor gone.`);
      if (life.evicting && !life.end)
        this.#report(1, life.last, `The eviction of resident ${id} is left without an end.`);
    }
  }

  #change(id: ResidentId, last: Recorded<BerthEvent>, to: (life: Life) => Partial<Life>): void {
    const life: Life = this.#lives.get(id) ?? { last, started: false, evicting: false };
    const changed = { ...life, ...to(life), last: placeOf(last) };
    this.#lives.set(id, changed);
    if (changed.end ?? (changed.outcome === 'LoadFailed' && !changed.evicting)) this.#over.add(id);
  }

  #wrong(recorded: Recorded<BerthEvent>, what: string): void {
    const data = recorded.event.data as { readonly residentId?: string };
    this.#report(1, recorded, `Resident ${data.residentId ?? ''} ${what}.`);
  }
}

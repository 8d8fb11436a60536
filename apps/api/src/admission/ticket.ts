import type { ResidentId, WorkerId } from '#domain/ids.js';
import type { Ticket } from '#placement/contract.js';
import type { AdmissionEnd, AdmissionWatch, QueuePlace, TicketPhase, TicketView, Wanted } from './port.js';

/** A call that waits, with what became of it so far. */
export class QueuedCall {
  readonly wanted: Wanted;
  readonly ticket: Ticket;
  readonly queuedAtMs: number;
  readonly ended: Promise<AdmissionEnd>;
  place = 0;
  phase: TicketPhase = 'queued';
  why = 'it has just come';
  freeInSeconds: number | undefined;
  /** As it stood when it came into the queue. */
  firstPlace: QueuePlace | undefined;
  decidedAtMs: number | undefined;
  readyAtMs: number | undefined;
  loading: { residentId: ResidentId; workerId: WorkerId } | undefined;
  #loadingMs = 0;
  #countedAtMs: number;
  #settle!: (end: AdmissionEnd) => void;
  readonly #watch: AdmissionWatch;
  #told = '';

  constructor(wanted: Wanted, arrival: number, nowMs: number, watch: AdmissionWatch) {
    this.wanted = wanted;
    this.queuedAtMs = nowMs;
    this.#countedAtMs = nowMs;
    this.#watch = watch;
    this.ticket = {
      callId: wanted.callId,
      modelKey: wanted.model.modelKey,
      arrivedAtMs: wanted.receivedAtMs,
      arrival,
      background: wanted.background,
      ...(wanted.group === undefined ? {} : { group: wanted.group }),
      promptTokens: wanted.promptTokens,
      ...(wanted.maxTokens === undefined ? {} : { maxTokens: wanted.maxTokens }),
    };
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  settle(end: AdmissionEnd): void {
    this.#settle(end);
  }

  /** Waited for a place so far; the loading of its own model does not count. */
  waitedMs(nowMs: number): number {
    if (this.phase === 'loading') this.#loadingMs += nowMs - this.#countedAtMs;
    this.#countedAtMs = nowMs;
    return nowMs - this.queuedAtMs - this.#loadingMs;
  }

  enter(phase: TicketPhase, why: string, nowMs: number): void {
    this.waitedMs(nowMs);
    this.phase = phase;
    this.why = why;
    if (phase !== 'loading') this.loading = undefined;
    if (phase !== 'waiting') this.freeInSeconds = undefined;
  }

  /** Tells the one who waits, when something changed. */
  tell(): void {
    const now = `${this.phase} ${this.place}`;
    if (now === this.#told) return;
    this.#told = now;
    this.#watch.onView?.(this.view());
  }

  view(): TicketView {
    return {
      callId: this.wanted.callId,
      modelKey: this.wanted.model.modelKey,
      phase: this.phase,
      place: this.place,
      why: this.why,
      ...(this.loading ? { loading: this.loading } : {}),
    };
  }
}

import type { FoundModel } from '#domain/events/catalog-events.js';
import type { DecisionCause } from '#domain/events/worker-events.js';
import type { BerthError } from '#domain/errors.js';
import type { CallId, DecisionId, ModelKey, ResidentId, WorkerId } from '#domain/ids.js';
import type { Ask } from '#domain/placement-terms.js';
import type { Resident } from '#domain/worker/state.js';
import type { CallOptions } from '#placement/model-name.js';
import type { EffectiveSettings } from '#placement/settings.js';

/** A call that wants a place, with everything that a decision about it needs. */
export interface Wanted {
  readonly callId: CallId;
  readonly model: FoundModel;
  readonly ask: Ask;
  /** Of the call as such; on a worker its own levels are laid between, see `TermsByWorker`. */
  readonly settings: EffectiveSettings;
  readonly options: CallOptions;
  readonly background: boolean;
  readonly group?: string;
  /** An estimate: it orders and sizes, and refuses nothing. */
  readonly promptTokens: number;
  readonly maxTokens?: number;
  readonly receivedAtMs: number;
  /** The only worker that will do; left out: any that has the model. */
  readonly worker?: WorkerId;
  /** What its decision is taken for, where that is no call. */
  readonly cause?: DecisionCause;
}

/** A slot of a resident, held for one call. */
export interface Lease {
  readonly workerId: WorkerId;
  readonly resident: Resident;
  /** Frees the slot; a second call of it does nothing. */
  release(): void;
}

/** How a call came to its slot: for its record and its headers. */
export interface AdmittedCall {
  readonly lease: Lease;
  readonly queuedAtMs?: number;
  readonly decidedAtMs?: number;
  readonly readyAtMs?: number;
  readonly place?: QueuePlace;
}

export interface QueuePlace {
  /** From 1; as it stood when the call came into the queue. */
  readonly position: number;
  readonly kind: string;
  readonly why: string;
  readonly predictedReadySeconds?: number;
  readonly predictedLoadSeconds?: number;
  readonly predictedOutputSeconds?: number;
}

export type TicketPhase =
  /** Waits for its turn. */
  | 'queued'
  /** An engine is asked what a plan would take. */
  | 'sizing'
  /** Nothing fits until something ends or becomes idle. */
  | 'waiting'
  /** A decision is being written. */
  | 'deciding'
  /** Its model loads. */
  | 'loading'
  /** Its model is there, with every slot taken. */
  | 'slot';

export interface TicketView {
  readonly callId: CallId;
  readonly modelKey: ModelKey;
  readonly phase: TicketPhase;
  readonly place: number;
  readonly why: string;
  readonly loading?: { readonly residentId: ResidentId; readonly workerId: WorkerId };
}

/** What the one who waits is told, and how it leaves. */
export interface AdmissionWatch {
  /** The ticket's phase or place changed. */
  onView?(view: TicketView): void;
}

export type AdmissionEnd =
  | { readonly kind: 'admitted'; readonly call: AdmittedCall }
  | {
      readonly kind: 'refused';
      readonly error: BerthError;
      readonly decisionId?: DecisionId;
      readonly place?: QueuePlace;
      readonly queuedAtMs?: number;
    }
  | { readonly kind: 'left'; readonly place?: QueuePlace; readonly queuedAtMs?: number };

export interface PendingAdmission {
  readonly ended: Promise<AdmissionEnd>;
  /** The caller is gone: its ticket leaves the queue; a load that it began goes on. */
  leave(): void;
  view(): TicketView | undefined;
}

import type { CallHistory, KeepAlive } from '#domain/calls/call-history.js';
import type { CallId } from '#domain/ids.js';
import type { Resident, WorkerState } from '#domain/worker/state.js';
import type { EffectiveSettings } from '../settings.js';

/** What is known of a resident that may have been idle for too long. */
export interface IdleQuestion {
  readonly worker: Pick<WorkerState, 'pins'>;
  readonly resident: Resident;
  /** Of its model, on its worker. */
  readonly settings: Pick<EffectiveSettings, 'pinned' | 'idleUnloadSeconds'>;
  /** Its model is one of those that the worker keeps loaded. */
  readonly preloaded: boolean;
  readonly calls: CallHistory;
  readonly callsInFlight: number;
  /** When the last call on it ended, as far as the asker saw itself, ms since 1970. */
  readonly lastCallEndedAtMs?: number;
  /** The call that came to it last, as far as the asker saw itself, and what it said of how long it is kept. */
  readonly lastCall?: { readonly beganAtMs: number; readonly keepAlive?: KeepAlive };
  /** Calls of its model that wait. */
  readonly waiting: number;
  readonly nowMs: number;
}

export interface IdleVerdict {
  readonly idleSeconds: number;
  readonly idleUnloadSeconds: number;
  readonly saidBy: 'settings' | 'call';
  readonly callId?: CallId;
}

/**
 * Whether a resident has been idle for longer than it may be, with nobody asking for its room. The call that came last
 * says how long, else the settings; without either it stays until its room is wanted. What is pinned, or is to be kept
 * loaded (`preload`), stays.
 */
export function idleTooLong(question: IdleQuestion): IdleVerdict | undefined {
  const { worker, resident, settings, calls, nowMs } = question;
  if (resident.phase !== 'ready' || resident.leaving) return undefined;
  if (question.callsInFlight > 0 || question.waiting > 0) return undefined;
  if (settings.pinned || worker.pins.has(resident.modelKey)) return undefined;
  if (question.preloaded) return undefined;
  const said = lastSaid(question);
  const idleUnloadSeconds = said?.seconds ?? settings.idleUnloadSeconds;
  if (idleUnloadSeconds === undefined) return undefined;
  const sinceMs = Math.max(
    question.lastCallEndedAtMs ?? 0,
    calls.lastEndedAtMs ?? 0,
    calls.arrivalsMs.at(-1) ?? 0,
    Date.parse(resident.readyAt ?? resident.decidedAt),
  );
  const idleSeconds = Math.max(0, (nowMs - sinceMs) / 1000);
  if (idleSeconds < idleUnloadSeconds) return undefined;
  return {
    idleSeconds,
    idleUnloadSeconds,
    saidBy: said ? 'call' : 'settings',
    ...(said ? { callId: said.callId } : {}),
  };
}

/** The asker's own last call may not be in the log yet; one of another api may have come after it. */
function lastSaid({ lastCall, calls }: IdleQuestion): KeepAlive | undefined {
  const arrivedAtMs = calls.arrivalsMs.at(-1) ?? 0;
  return lastCall && lastCall.beganAtMs >= arrivedAtMs ? lastCall.keepAlive : calls.keepAlive;
}

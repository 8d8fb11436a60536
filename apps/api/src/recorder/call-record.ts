import type { BerthError } from '#domain/errors.js';
import type { CallEvent, CallEventData, CallOutcome, CallStamps } from '#domain/events/call-events.js';
import type { ApiId, CallId, ModelKey, ResidentId, WorkerId } from '#domain/ids.js';
import type { AdmittedCall, QueuePlace } from '../admission/port.js';
import type { CallTokens } from '#domain/events/call-events.js';
import { isoTime } from './iso-time.js';

export interface CallStart {
  readonly callId: CallId;
  readonly modelKey: ModelKey;
  readonly endpoint: string;
  readonly background: boolean;
  readonly stream: boolean;
  readonly promptBytes: number;
  readonly receivedAtMs: number;
  readonly maxTokens?: number;
  readonly idleUnloadSeconds?: number;
  readonly keyId?: string;
  readonly intent?: string;
  readonly group?: string;
}

export interface CallEnd {
  readonly outcome: CallOutcome;
  readonly status: number;
  readonly error?: Pick<BerthError, 'code'>;
  readonly bytesOut?: number;
  readonly tokens?: CallTokens;
  readonly timings?: { readonly promptMs?: number; readonly decodeMs?: number };
}

/** The two facts of a call, put together when they are asked for: after they were said, they do not change. */
export interface CallFactSource {
  readonly callId: CallId;
  readonly modelKey: ModelKey;
  readonly endpoint: string;
  started(): CallEvent;
  finished(): CallEvent;
}

export interface CallFacts {
  /** Takes a fact; never throws, never waits. */
  write(source: CallFactSource, fact: 'started' | 'finished'): void;
}

/** One call's facts as they come together. It ends once, whatever happens: a second end does nothing. */
export class CallRecord implements CallFactSource {
  readonly #facts: CallFacts;
  readonly #apiId: ApiId;
  readonly #start: CallStart;
  readonly #now: () => number;
  #queuedAtMs: number | undefined;
  #decidedAtMs: number | undefined;
  #readyAtMs: number | undefined;
  #forwardedAtMs: number | undefined;
  #firstByteAtMs: number | undefined;
  #place: QueuePlace | undefined;
  #served: { workerId: WorkerId; residentId: ResidentId; artifact: string; decisionId: string } | undefined;
  #refusedBy: string | undefined;
  #attempts = 0;
  #end: CallEnd | undefined;
  #finishedAtMs = 0;

  constructor(facts: CallFacts, apiId: ApiId, start: CallStart, now: () => number) {
    this.#facts = facts;
    this.#apiId = apiId;
    this.#start = start;
    this.#now = now;
    facts.write(this, 'started');
  }

  get callId(): CallId {
    return this.#start.callId;
  }

  get modelKey(): ModelKey {
    return this.#start.modelKey;
  }

  get endpoint(): string {
    return this.#start.endpoint;
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  get attempts(): number {
    return this.#attempts;
  }

  admitted({ lease, queuedAtMs, decidedAtMs, readyAtMs, place }: AdmittedCall): void {
    const { residentId, artifact, decisionId } = lease.resident;
    this.#served = { workerId: lease.workerId, residentId, artifact, decisionId };
    this.queued(queuedAtMs, place);
    this.#decidedAtMs ??= decidedAtMs;
    this.#readyAtMs = readyAtMs ?? this.#readyAtMs;
  }

  queued(atMs: number | undefined, place: QueuePlace | undefined): void {
    this.#queuedAtMs ??= atMs;
    this.#place ??= place;
  }

  refusedBy(decisionId: string | undefined): void {
    this.#refusedBy = decisionId;
  }

  forwarded(): void {
    this.#attempts += 1;
    this.#forwardedAtMs = this.#now();
  }

  firstByte(): void {
    this.#firstByteAtMs ??= this.#now();
  }

  finish(end: CallEnd): void {
    if (this.#end) return;
    this.#end = end;
    this.#finishedAtMs = this.#now();
    this.#facts.write(this, 'finished');
  }

  started(): CallEvent {
    const { receivedAtMs, ...rest } = this.#start;
    return { type: 'CallStarted', data: { ...rest, apiId: this.#apiId, receivedAt: isoTime(receivedAtMs) } };
  }

  /** @throws when the call has not ended. */
  finished(): CallEvent {
    if (!this.#end) throw new Error(`The call ${this.#start.callId} has not ended.`);
    return { type: 'CallFinished', data: this.#data(this.#end) };
  }

  #data(end: CallEnd): CallEventData<'CallFinished'> {
    const { callId, modelKey } = this.#start;
    const decisionId = this.#served?.decisionId ?? this.#refusedBy;
    return {
      callId,
      apiId: this.#apiId,
      modelKey,
      outcome: end.outcome,
      status: end.status,
      ...(end.error ? { code: end.error.code } : {}),
      ...(this.#served
        ? {
            workerId: this.#served.workerId,
            residentId: this.#served.residentId,
            artifact: this.#served.artifact,
          }
        : {}),
      ...(decisionId === undefined ? {} : { decisionId }),
      attempts: this.#attempts,
      stamps: this.#stamps(),
      ...(this.#place ? { queue: this.#place } : {}),
      tokens: end.tokens ?? {},
      timings: end.timings ?? {},
      bytesOut: end.bytesOut ?? 0,
    };
  }

  #stamps(): CallStamps {
    return {
      receivedAt: isoTime(this.#start.receivedAtMs),
      ...(this.#queuedAtMs === undefined ? {} : { queuedAt: isoTime(this.#queuedAtMs) }),
      ...(this.#decidedAtMs === undefined ? {} : { decidedAt: isoTime(this.#decidedAtMs) }),
      ...(this.#readyAtMs === undefined ? {} : { readyAt: isoTime(this.#readyAtMs) }),
      ...(this.#forwardedAtMs === undefined ? {} : { forwardedAt: isoTime(this.#forwardedAtMs) }),
      ...(this.#firstByteAtMs === undefined ? {} : { firstByteAt: isoTime(this.#firstByteAtMs) }),
      finishedAt: isoTime(this.#finishedAtMs),
    };
  }
}

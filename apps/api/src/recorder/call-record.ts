import type { BerthError } from '#domain/errors.js';
import type { CallEvent, CallEventData, CallOutcome } from '#domain/events/call-events.js';
import type { ApiId, CallId, ModelKey, ResidentId, WorkerId } from '#domain/ids.js';
import type { AdmittedCall, QueuePlace } from '../admission/port.js';
import type { CallTokens } from '#domain/events/call-events.js';

export interface CallStart {
  readonly callId: CallId;
  readonly modelKey: ModelKey;
  readonly endpoint: string;
  readonly background: boolean;
  readonly stream: boolean;
  readonly promptBytes: number;
  readonly receivedAtMs: number;
  readonly maxTokens?: number;
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

export interface CallFacts {
  /** Takes a fact; never throws, never waits. */
  write(event: CallEvent, callId: CallId): void;
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** One call's facts as they come together. It ends once, whatever happens: a second end does nothing. */
export class CallRecord {
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
  #ended = false;

  constructor(facts: CallFacts, apiId: ApiId, start: CallStart, now: () => number) {
    this.#facts = facts;
    this.#apiId = apiId;
    this.#start = start;
    this.#now = now;
    const { receivedAtMs, ...rest } = start;
    facts.write(
      { type: 'CallStarted', data: { ...rest, apiId, receivedAt: iso(receivedAtMs) } },
      start.callId,
    );
  }

  get ended(): boolean {
    return this.#ended;
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
    if (this.#ended) return;
    this.#ended = true;
    this.#facts.write({ type: 'CallFinished', data: this.#data(end) }, this.#start.callId);
  }

  #data(end: CallEnd): CallEventData<'CallFinished'> {
    const decisionId = this.#served?.decisionId ?? this.#refusedBy;
    const stamp = <K extends string>(key: K, ms: number | undefined) =>
      (ms === undefined ? {} : { [key]: iso(ms) }) as Partial<Record<K, string>>;
    return {
      callId: this.#start.callId,
      apiId: this.#apiId,
      modelKey: this.#start.modelKey,
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
      stamps: {
        receivedAt: iso(this.#start.receivedAtMs),
        ...stamp('queuedAt', this.#queuedAtMs),
        ...stamp('decidedAt', this.#decidedAtMs),
        ...stamp('readyAt', this.#readyAtMs),
        ...stamp('forwardedAt', this.#forwardedAtMs),
        ...stamp('firstByteAt', this.#firstByteAtMs),
        finishedAt: iso(this.#now()),
      },
      ...(this.#place ? { queue: this.#place } : {}),
      tokens: end.tokens ?? {},
      timings: end.timings ?? {},
      bytesOut: end.bytesOut ?? 0,
    };
  }
}

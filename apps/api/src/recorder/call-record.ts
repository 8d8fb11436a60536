import type { BerthError } from '#domain/errors.js';
import type { CallEvent, CallEventData, CallOutcome, CallStamps } from '#domain/events/call-events.js';
import type { Writable } from '#domain/writable.js';
import type { ApiId, CallId, ModelKey } from '#domain/ids.js';
import type { AdmittedCall, Lease, QueuePlace } from '../admission/port.js';
import type { CallTokens } from '#domain/events/call-events.js';
import { isoTime } from './iso-time.js';

export interface CallStart {
  readonly callId: CallId;
  readonly modelKey: ModelKey;
  readonly endpoint: string;
  readonly background: boolean;
  readonly stream: boolean;
  readonly promptBytes: number;
  /** The prompt has pictures, whose tokens are not those of its text. */
  readonly pictures?: true;
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

/** How long a call took, from its coming. */
export interface CallTimes {
  readonly totalMs: number;
  readonly firstByteMs?: number;
}

/** The two facts of a call, put together when they are asked for: after they were said, they do not change. */
export interface CallFactSource {
  readonly callId: CallId;
  readonly modelKey: ModelKey;
  readonly endpoint: string;
  started(): CallStarted;
  finished(): CallFinished;
  times(): CallTimes;
}

type CallStarted = Extract<CallEvent, { type: 'CallStarted' }>;
type CallFinished = Extract<CallEvent, { type: 'CallFinished' }>;

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
  #served: Pick<Lease, 'workerId' | 'resident'> | undefined;
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
    this.#served = lease;
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

  started(): CallStarted {
    const { callId, modelKey, endpoint, background, stream, promptBytes, receivedAtMs } = this.#start;
    const { keyId, maxTokens, idleUnloadSeconds, intent, group } = this.#start;
    const receivedAt = isoTime(receivedAtMs);
    const apiId = this.#apiId;
    const data: Writable<CallEventData<'CallStarted'>> = {
      callId,
      apiId,
      modelKey,
      endpoint,
      background,
      stream,
      promptBytes,
      receivedAt,
    };
    if (keyId !== undefined) data.keyId = keyId;
    if (maxTokens !== undefined) data.maxTokens = maxTokens;
    if (idleUnloadSeconds !== undefined) data.idleUnloadSeconds = idleUnloadSeconds;
    if (intent !== undefined) data.intent = intent;
    if (group !== undefined) data.group = group;
    return { type: 'CallStarted', data };
  }

  /** @throws when the call has not ended. */
  finished(): CallFinished {
    if (!this.#end) throw new Error(`The call ${this.#start.callId} has not ended.`);
    return { type: 'CallFinished', data: this.#data(this.#end) };
  }

  times(): CallTimes {
    const { receivedAtMs } = this.#start;
    const totalMs = this.#finishedAtMs - receivedAtMs;
    if (this.#firstByteAtMs === undefined) return { totalMs };
    return { totalMs, firstByteMs: this.#firstByteAtMs - receivedAtMs };
  }

  #data(end: CallEnd): CallEventData<'CallFinished'> {
    const { callId, modelKey } = this.#start;
    const data: Writable<CallEventData<'CallFinished'>> = {
      callId,
      apiId: this.#apiId,
      modelKey,
      outcome: end.outcome,
      status: end.status,
      attempts: this.#attempts,
      stamps: this.#stamps(),
      tokens: end.tokens ?? {},
      timings: end.timings ?? {},
      bytesOut: end.bytesOut ?? 0,
    };
    const decisionId = this.#served?.resident.decisionId ?? this.#refusedBy;
    if (this.#served) {
      data.workerId = this.#served.workerId;
      data.residentId = this.#served.resident.residentId;
      data.artifact = this.#served.resident.artifact;
    }
    if (decisionId !== undefined) data.decisionId = decisionId;
    if (end.error) data.code = end.error.code;
    if (this.#place) data.queue = this.#place;
    if (end.tokens?.prompt !== undefined && !this.#start.pictures) data.promptBytes = this.#start.promptBytes;
    return data;
  }

  #stamps(): CallStamps {
    const stamps: Writable<CallStamps> = {
      receivedAt: isoTime(this.#start.receivedAtMs),
      finishedAt: isoTime(this.#finishedAtMs),
    };
    if (this.#queuedAtMs !== undefined) stamps.queuedAt = isoTime(this.#queuedAtMs);
    if (this.#decidedAtMs !== undefined) stamps.decidedAt = isoTime(this.#decidedAtMs);
    if (this.#readyAtMs !== undefined) stamps.readyAt = isoTime(this.#readyAtMs);
    if (this.#forwardedAtMs !== undefined) stamps.forwardedAt = isoTime(this.#forwardedAtMs);
    if (this.#firstByteAtMs !== undefined) stamps.firstByteAt = isoTime(this.#firstByteAtMs);
    return stamps;
  }
}

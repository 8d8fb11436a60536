import type { ApiId, CallId, ModelKey, ResidentId, WorkerId } from '../ids.js';
import type { EventOf } from './envelope.js';

/** Stream `calls-<modelKey>`: counts, sizes and stamps of each call. Never a word of prompt or answer. */

export const CALL_OUTCOMES = ['completed', 'failed', 'abandoned', 'refused'] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** ISO times of a call's way; a stage that it never reached is left out. */
export interface CallStamps {
  readonly receivedAt: string;
  readonly queuedAt?: string;
  readonly decidedAt?: string;
  readonly readyAt?: string;
  readonly forwardedAt?: string;
  readonly firstByteAt?: string;
  readonly finishedAt: string;
}

export interface CallTokens {
  readonly prompt?: number;
  readonly cached?: number;
  readonly output?: number;
  readonly reasoning?: number;
}

export type CallEvent =
  | EventOf<
      'CallStarted',
      {
        readonly callId: CallId;
        readonly apiId: ApiId;
        readonly modelKey: ModelKey;
        /** `/v1/chat/completions` and its like. */
        readonly endpoint: string;
        readonly workerId?: WorkerId;
        readonly keyId?: string;
        /** HMAC of the session's name under a local key. */
        readonly group?: string;
        readonly intent?: string;
        readonly background: boolean;
        readonly stream: boolean;
        readonly promptBytes: number;
        readonly maxTokens?: number;
        /** How long its resident may be idle after it, where the call says so (Ollama's `keep_alive`). */
        readonly idleUnloadSeconds?: number;
        readonly askDigest?: string;
        readonly receivedAt: string;
      }
    >
  | EventOf<
      'CallFinished',
      {
        readonly callId: CallId;
        readonly apiId: ApiId;
        readonly modelKey: ModelKey;
        readonly outcome: CallOutcome;
        /** HTTP status that the client got; 499 when it had left before a head was sent. */
        readonly status: number;
        readonly code?: string;
        readonly workerId?: WorkerId;
        readonly residentId?: ResidentId;
        /** The decision that made the resident, or refused the call. */
        readonly decisionId?: string;
        readonly artifact?: string;
        /** How often the call was sent to an engine. */
        readonly attempts: number;
        readonly stamps: CallStamps;
        readonly queue?: {
          readonly position: number;
          readonly kind: string;
          readonly predictedReadySeconds?: number;
          readonly predictedLoadSeconds?: number;
          readonly predictedOutputSeconds?: number;
          readonly why: string;
        };
        /** Of a prompt that was text alone and was counted: its bytes beside its tokens say how many make one. */
        readonly promptBytes?: number;
        readonly tokens: CallTokens;
        readonly timings: { readonly promptMs?: number; readonly decodeMs?: number };
        readonly cpuMs?: number;
        readonly bytesOut: number;
        /** HMACs under a local key. */
        readonly requestDigest?: string;
        readonly responseDigest?: string;
      }
    >;

export type CallEventType = CallEvent['type'];
export type CallEventData<T extends CallEventType> = Extract<CallEvent, { type: T }>['data'];

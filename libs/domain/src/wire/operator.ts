import type { WireWritten } from './rows.js';

/** What an operator may ask of a worker. */
export type OperatorActionName =
  'evict' | 'evict-all' | 'load' | 'refresh-models' | 'remove-model' | 'restart-agent';

/**
 * Body of `POST /admin/operator/actions`. The same `Idempotency-Key` (a header) is the same action: asked again, it is
 * answered with what became of it. `POST /admin/residents/ID/evict` is `evict` for short.
 */
export interface OperatorActionRequest {
  readonly action: OperatorActionName;
  /** The worker's id; may be left out where the target names it, or where there is one worker. */
  readonly worker?: string;
  /** `evict`: a resident's id. `load` and `remove-model`: a model's key. The others take none. */
  readonly target?: string;
  /** `load`: options as behind a model's name, such as `ctx=8192,quant=Q4_K_M`. */
  readonly options?: string;
}

export interface OperatorItem {
  readonly actionId: string;
  readonly workerId: string;
  readonly action?: string;
  readonly target?: string;
  readonly by?: string;
  readonly state: 'requested' | 'running' | 'done' | 'failed';
  /** A sentence: what came of it, with its figures. */
  readonly result?: string;
  readonly requestedAt?: string;
  readonly startedAt?: string;
  readonly endedAt?: string;
}

/** The answer to a request: the action as it stands, and where its event is. */
export interface OperatorAccepted extends OperatorItem, WireWritten {}

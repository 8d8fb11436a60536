import type { ModelKey, ResidentId } from '#domain/ids.js';
import type { BytesByDevice } from './charges.js';

/** A resident that may be evicted, with what counts for and against it. */
export interface EvictionCandidate {
  readonly residentId: ResidentId;
  readonly modelKey: ModelKey;
  readonly band: number;
  readonly frees: BytesByDevice;
  readonly lossSeconds: number;
  readonly reloadSeconds: number;
  readonly idleSeconds: number;
  readonly calls: number;
  /** Calls of which one counts half as much for every H that it lies back. */
  readonly agedCalls: number;
  /** Its size cannot be told on a device: it is taken only when nothing else suffices. */
  readonly unknownSize: boolean;
}

export interface EvictionSet {
  readonly victims: readonly EvictionCandidate[];
  /** True when no set of less loss would do, what each frees counted for it. */
  readonly exact: boolean;
}

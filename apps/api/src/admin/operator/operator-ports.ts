import type { ModelKey, WorkerId } from '#domain/ids.js';
import type { OperatorBook } from '../../operator/operator-book.js';

/** What commands to workers need of the api beside its fold of the fleet. */
export interface OperatorPorts {
  readonly book: Pick<OperatorBook, 'catchUp'>;
  readonly isConnected: (worker: WorkerId) => boolean;
  /** Calls of this api that wait for the model. */
  readonly waitingFor: (model: ModelKey) => number;
}

export const OPERATOR_PORTS = Symbol('operator ports');

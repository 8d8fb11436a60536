import type { PlacementDecidedData } from '#domain/events/worker-events.js';
import type { PairHistory } from '#domain/history/history.js';
import type { ModelKey } from '#domain/ids.js';
import type { WorkerState } from '#domain/worker/state.js';
import { compareText } from './charges.js';
import { remainingLoad } from './predict.js';

/** What one worker offers for a call. */
export interface WorkerOffer {
  readonly name: string;
  /** Predicted seconds until the model is loaded there. */
  readonly readySeconds: number;
  /** Predicted seconds of prompt and decode; absent when unknown. */
  readonly outputSeconds?: number;
  /** Expected loss of what it would displace. */
  readonly lossSeconds: number;
  /** How many residents it would displace. */
  readonly displaced: number;
  /** Something loads there, or is about to. */
  readonly loading: boolean;
}

/** The offer that a decision makes. Loads that are under way on the worker come first: they read the same disk. */
export function offerOf(
  worker: WorkerState,
  histories: ReadonlyMap<ModelKey, PairHistory>,
  { predicted, victims }: Pick<PlacementDecidedData, 'predicted' | 'victims'>,
  nowMs: number,
): WorkerOffer {
  const { readyInSeconds = 0, loadSeconds = 0, outputSeconds } = predicted;
  let underWay = 0;
  let loading = false;
  for (const resident of worker.residents.values()) {
    if (resident.leaving || resident.phase === 'ready') continue;
    loading = true;
    underWay += remainingLoad(resident, { histories, nowMs });
  }
  return {
    name: worker.name,
    readySeconds: readyInSeconds + underWay + loadSeconds,
    ...(outputSeconds === undefined ? {} : { outputSeconds }),
    lossSeconds: victims.reduce((sum, v) => sum + v.lossSeconds, 0),
    displaced: victims.length,
    loading,
  };
}

/**
 * Whether an offer is not to be taken yet: it would displace somebody for a load that has to share the disk with one that
 * is under way. Until that is done its victims may be called, a cheaper one become idle, or a call with a shorter load
 * come, and nothing is lost by waiting. A call that is overdue does not wait for it: what it drains may take long.
 */
export const isTooEarly = ({ displaced, loading }: WorkerOffer): boolean => displaced > 0 && loading;

/**
 * The smallest predicted time to output with the loss of what is displaced, as plans of one worker are ranked; then the
 * least displaced, then the worker's name. Without the loss the spread of measured loads alone would choose between
 * equal workers, whatever it evicts.
 */
export function chooseWorker<O extends WorkerOffer>(offers: readonly O[]): O | undefined {
  return [...offers].sort(
    (a, b) =>
      unknown(a) - unknown(b) ||
      secondsOf(a) - secondsOf(b) ||
      a.displaced - b.displaced ||
      compareText(a.name, b.name),
  )[0];
}

const unknown = ({ outputSeconds }: WorkerOffer): number => (outputSeconds === undefined ? 1 : 0);

const secondsOf = ({ readySeconds, outputSeconds = 0, lossSeconds }: WorkerOffer): number =>
  readySeconds + outputSeconds + lossSeconds;

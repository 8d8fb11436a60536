import { compareText } from './charges.js';

/** What one worker offers for a call. */
export interface WorkerOffer {
  readonly name: string;
  /** Predicted seconds to the end of the output; absent when unknown. */
  readonly seconds?: number;
  /** How many residents it would displace. */
  readonly displaced: number;
}

/** The smallest predicted time to output, then the least displaced, then the worker's name. */
export function chooseWorker<O extends WorkerOffer>(offers: readonly O[]): O | undefined {
  return [...offers].sort(
    (a, b) =>
      compareSeconds(a.seconds, b.seconds) || a.displaced - b.displaced || compareText(a.name, b.name),
  )[0];
}

function compareSeconds(a: number | undefined, b: number | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return 1;
  return b === undefined ? -1 : a - b;
}

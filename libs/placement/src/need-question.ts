import type { Artifact, Attachment } from '#domain/events/catalog-events.js';
import type { PairHistory } from '#domain/history/history.js';
import type { DeviceId } from '#domain/ids.js';
import type { NeedTerm, PlacementClass } from '#domain/placement-terms.js';
import type { Amounts } from './amounts.js';
import type { ProcessFigures } from './process-figures.js';
import type { OffloadOrder } from './weights.js';

export interface NeedQuestion {
  readonly artifact: Artifact;
  readonly plan: PlacementClass;
  readonly history: PairHistory;
  readonly process: ProcessFigures;
  readonly order: OffloadOrder;
  /** What the engine loads beside the weights. */
  readonly attachments?: readonly Attachment[];
}

/** What a plan takes. Plans are priced far more often than they are told: the terms are made when they are read. */
export interface Need {
  /** Every term with its basis and the event that it came from. */
  readonly terms: readonly NeedTerm[];
  /** Sum by device of all terms that have a figure. */
  readonly bytes: Amounts;
  /** Sum by device of what the header gives exactly and of what was measured: without estimates. */
  readonly exactBytes: Amounts;
  /** Over all devices. */
  readonly weightsBytes: number;
  /** Devices on which weights or KV are unknown. */
  readonly unknownOn: ReadonlySet<DeviceId>;
  /** Neither measured nor projected: an engine could still say more. */
  readonly fromHeader: boolean;
}

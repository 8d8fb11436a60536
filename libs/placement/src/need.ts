import type { PairHistory } from '#domain/history/history.js';
import { classKey } from '#domain/placement-terms.js';
import { observedBytesPerToken } from './kv.js';
import { type Measured, measuredOf, nearestMeasured, projectedOf } from './measured.js';
import { HeaderFigures, MovedFigures, PartFigures } from './need-figures.js';
import { measuredParts, projectedParts, unknownParts } from './need-parts.js';
import type { Need, NeedQuestion } from './need-question.js';

export type { Need, NeedQuestion } from './need-question.js';

/** An engine whose cache grew with the tokens held showed what each takes: a full context is priced with that. */
function cacheGrowth({ serving }: PairHistory, { value }: Measured): number {
  if (serving.size === 0) return 1;
  const { contextTokens, slots } = value.class;
  const readings = serving
    .get(classKey(value.class))
    ?.flatMap(({ kvBytes, tokensHeld }) => (kvBytes === undefined ? [] : [{ kvBytes, tokensHeld }]));
  const perToken = readings && observedBytesPerToken(readings);
  const held = value.byDevice.reduce((sum, d) => sum + d.kvBytes, 0);
  return perToken === undefined || held === 0 ? 1 : Math.max(1, (perToken * contextTokens * slots) / held);
}

/**
 * What a plan takes, per device, each term with its basis and the event that it came from. Order of belief: measured
 * for this class; measured for another class of the artifact, moved by the header's difference; projected; header.
 */
export function needOf(question: NeedQuestion): Need {
  const { artifact, plan, history } = question;
  const same = measuredOf(history, plan);
  if (same) return new PartFigures(measuredParts(same, cacheGrowth(history, same)), false);
  const { geometry } = artifact;
  const nearest = geometry && nearestMeasured(history, plan);
  if (nearest) return new MovedFigures(nearest, geometry, question);
  const projected = projectedOf(history, plan);
  if (projected) return new PartFigures(projectedParts(projected, question), false);
  return geometry ? new HeaderFigures(geometry, question) : new PartFigures(unknownParts(plan), true);
}

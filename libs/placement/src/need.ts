import { measuredOf, nearestMeasured, projectedOf } from './measured.js';
import { HeaderFigures, MovedFigures, PartFigures } from './need-figures.js';
import { measuredParts, projectedParts, unknownParts } from './need-parts.js';
import type { Need, NeedQuestion } from './need-question.js';

export type { Need, NeedQuestion } from './need-question.js';

/**
 * What a plan takes, per device, each term with its basis and the event that it came from. Order of belief: measured
 * for this class; measured for another class of the artifact, moved by the header's difference; projected; header.
 */
export function needOf(question: NeedQuestion): Need {
  const { artifact, plan, history } = question;
  const same = measuredOf(history, plan);
  if (same) return new PartFigures(measuredParts(same), false);
  const { geometry } = artifact;
  const nearest = geometry && nearestMeasured(history, plan);
  if (nearest) return new MovedFigures(nearest, geometry, question);
  const projected = projectedOf(history, plan);
  if (projected) return new PartFigures(projectedParts(projected, question), false);
  return geometry ? new HeaderFigures(geometry, question) : new PartFigures(unknownParts(plan), true);
}

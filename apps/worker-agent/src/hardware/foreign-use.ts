import { MIB } from '#domain/units.js';

/** Foreign use is told in steps, so that what wobbles writes nothing. */
export const FOREIGN_STEP_BYTES = 128 * MIB;

/**
 * The step that foreign use is charged at: its upper edge. Moves up as soon as the use passes the edge, and down only
 * when the use lies more than one whole step below it (hysteresis), so that a value at an edge does not flap.
 * @param charged what was charged before; undefined for the first reading
 * @param bytes the reading
 */
export function stepForeignUse(charged: number | undefined, bytes: number): number {
  const edge = Math.ceil(Math.max(0, bytes) / FOREIGN_STEP_BYTES) * FOREIGN_STEP_BYTES;
  if (charged === undefined || edge > charged) return edge;
  return bytes < charged - 2 * FOREIGN_STEP_BYTES ? edge : charged;
}

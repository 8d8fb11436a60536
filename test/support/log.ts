import { expect } from 'vitest';
import type { BerthEvent, Recorded } from '#domain/events/index.js';
import { checkInvariants } from '#events/check/invariants.js';
import { reproduceLog } from '#placement/what-if/reproduce-log.js';
import { readWholeLog, withLogAtRest } from './log-at-rest.js';

export { openLogOf, readWholeLog, withLogAtRest } from './log-at-rest.js';

/** The invariants of the catalogue and the form of every event, on a log at rest. Every e2e test ends with it. */
export async function expectInvariants(
  home: string,
  /** False for what was ended by force: what it left open is the next start's. */
  atRest = true,
): Promise<readonly Recorded<BerthEvent>[]> {
  return withLogAtRest(home, async (log) => {
    expect(await checkInvariants(log, { atRest })).toEqual([]);
    return readWholeLog(log);
  });
}

/** The same code on what the log holds decides as the api did, in 99 of 100 decisions at least. */
export function expectReproduced(events: readonly Recorded<BerthEvent>[]): void {
  const { decisions, identical, differences } = reproduceLog(events);
  expect(decisions).toBeGreaterThan(0);
  expect(identical / decisions, JSON.stringify(differences, null, 1)).toBeGreaterThanOrEqual(0.99);
}

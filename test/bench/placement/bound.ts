import type { CachingProgram } from '#placement/simulate/caching-program.js';
import { leastLoading } from '../../../apps/api/src/what-if/least-cost.js';

const TIME_LIMIT_SECONDS = 600;

/** Least load seconds of the program. @throws when the solver gives none. */
export async function solve(program: CachingProgram): Promise<number> {
  const least = await leastLoading(program, TIME_LIMIT_SECONDS);
  if (least.kind === 'solved') return least.seconds;
  throw new Error(`the bound has no solution: ${least.why}`);
}

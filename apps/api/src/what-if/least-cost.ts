import { createRequire } from 'node:module';
import type { Highs } from 'highs';
import { type CachingProgram, linearProgramOf } from '#placement/simulate/caching-program.js';

/** The package's ES entry has no types that this compiler reads as a module; its CommonJS entry is the same loader. */
const highsLoader = createRequire(import.meta.url)('highs') as () => Promise<Highs>;
let loaded: Promise<Highs> | undefined;

export type LeastLoading =
  | { readonly kind: 'solved'; readonly seconds: number }
  | { readonly kind: 'not computed'; readonly why: string };

/** More than that takes minutes and gigabytes. */
const MOST_COLUMNS = 200_000;

/** Least load seconds of the program. Blocks its thread while it solves. */
export async function leastLoading(program: CachingProgram, timeLimitSeconds: number): Promise<LeastLoading> {
  const { constantSeconds, starts, indices, values, ...lp } = linearProgramOf(program);
  const { numCols, numRows } = lp;
  if (numCols === 0) return { kind: 'solved', seconds: constantSeconds };
  if (numCols > MOST_COLUMNS)
    return {
      kind: 'not computed',
      why: `it would have ${numCols.toLocaleString('en')} unknowns, and at most ${MOST_COLUMNS.toLocaleString('en')} are tried; choose a shorter time`,
    };
  const highs = await (loaded ??= highsLoader());
  const model = highs.createModel({
    ...lp,
    matrix: { format: 'csc', numRows, numCols, starts, indices, values },
  });
  try {
    model.options.set('output_flag', false);
    model.options.set('time_limit', timeLimitSeconds);
    model.run();
    const status = model.getModelStatus();
    const { modelStatus } = highs.constants;
    if (status === modelStatus.optimal)
      return { kind: 'solved', seconds: constantSeconds + model.getObjectiveValue() };
    if (status === modelStatus.timeLimit)
      return {
        kind: 'not computed',
        why: `it was not found within ${timeLimitSeconds} s; choose a shorter time`,
      };
    return { kind: 'not computed', why: `the solver ended with status ${status}` };
  } finally {
    model.dispose();
  }
}

import fc from 'fast-check';
import { it } from 'vitest';

/** What must hold of every case; throws when it does not. */
export type Checks<C> = Readonly<Record<string, (c: C) => void>>;

/**
 * One test for each check, all of them on the same cases: drawing a case and deciding it costs far more than looking at
 * what came out. A check that fails is run by itself again on the same cases, so that it is told with the smallest.
 * @param caseOf what the checks look at; worked out once for each case
 * @returns goes through the cases, unless a check did before: for what is said of all of them together
 */
export function explore<G, C>(
  drawn: fc.Arbitrary<G>,
  caseOf: (given: G) => C,
  checks: Checks<C>,
  numRuns: number,
): { readonly run: () => void } {
  const failed = new Set<string>();
  let seed: number | undefined;
  const run = (): number => {
    if (seed !== undefined) return seed;
    seed = fc.readConfigureGlobal().seed ?? fc.sample(fc.integer(), 1)[0] ?? 0;
    fc.assert(
      fc.property(drawn, (given) => {
        const made = caseOf(given);
        for (const [name, check] of Object.entries(checks)) {
          if (failed.has(name)) continue;
          try {
            check(made);
          } catch {
            failed.add(name);
          }
        }
      }),
      { numRuns, seed },
    );
    return seed;
  };
  for (const [name, check] of Object.entries(checks)) {
    it(name, () => {
      const same = run();
      if (!failed.has(name)) return;
      fc.assert(
        fc.property(drawn, (given) => {
          check(caseOf(given));
        }),
        { numRuns, seed: same },
      );
      throw new Error(`${name}: failed once, and not again on the same cases`);
    });
  }
  return {
    run: () => {
      run();
    },
  };
}

/** Said by hand: a matcher costs more than most of what these checks look at. */
export function must(holds: boolean, what: () => string): void {
  if (!holds) throw new Error(what());
}

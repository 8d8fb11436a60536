import fc from 'fast-check';

// Properties look for new cases at each run; with FAST_CHECK_SEED a run can be had again exactly. FAST_CHECK_RUNS asks for
// more cases of those that say no number of their own; they are many, so not for more than this.
const MOST_RUNS = 500;
const { FAST_CHECK_SEED: seed, FAST_CHECK_RUNS: runs } = process.env;
fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  ...(seed ? { seed: Number(seed) } : {}),
  ...(runs ? { numRuns: Math.min(MOST_RUNS, Number(runs)) } : {}),
});

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '#runtime/process-info.js';
import { UsageError } from '../usage-error.js';
import type { Command, Outcome } from './command.js';

const PLACEMENT = 'test/bench/placement/main.js';

/** Benchmarks are part of a checkout alone: they need its tests' build, and data that no package has. */
export const bench: Command = {
  name: 'bench',
  usage:
    'bench placement [--workload W1] [--hardware 96] [--seeds 5] [--sizing] [--oracles] [--waits] [--check] [--out FOLDER] [--traces FOLDER]',
  summary: 'run the placement rules and others over recorded arrivals, beside the best that is possible',
  details: [
    'Works from a checkout of the repository only, with request traces that the repository does not have:',
    'their folder is given by --traces or BERTH_TRACES, else it is ../shared/traces beside the checkout.',
    'Starts nothing and touches no running Berth: a simulated fleet is driven by the same rules.',
    '--check   the targets on W1; 1 when one is missed',
    '--out     report.md and a plot for each table',
  ].join('\n'),
  group: 'other',
  run: (argv) => {
    const [what, ...args] = argv;
    if (what !== 'placement')
      throw new UsageError(
        `\`berth bench\` knows one bench: placement${what === undefined ? '' : `, not "${what}"`}`,
      );
    if (!existsSync(join(packageRoot(), 'dist', PLACEMENT)))
      throw new UsageError(
        '`berth bench placement` needs a checkout of the repository, built with `npx tsc -b`',
      );
    return Promise.resolve<Outcome>({ kind: 'run', main: PLACEMENT, args, env: {} });
  },
};

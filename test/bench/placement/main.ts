import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { HARDWARE, type HardwareName } from './hardware.js';
import { oracles, policies, sizingPolicies } from './policies.js';
import { plot } from './plot.js';
import { markdown, rowsOf, waitsTable } from './report.js';
import { type Run, runAll } from './runs.js';
import { isCompared, TARGET_HARDWARE, verdicts } from './targets.js';
import { whyNoTraces } from './traces.js';
import { WORKLOADS, type WorkloadName } from './workloads.js';

const USAGE = `Usage: node dist/test/bench/placement/main.js [options]
  --workload W1,W5     default: all (${WORKLOADS.join(', ')})
  --hardware 48,96     default: ${Object.keys(HARDWARE).join(', ')}
  --seeds 5            seeds 1 to n, the same for every policy
  --only Berth         policies whose name contains this
  --sizing             Berth with exact sizes, with sizes 15 % off, and with these until they are measured
  --oracles            Berth and LRU beside those that know the rates behind the calls or the calls to come, Berth with either known
  --waits              a second table: where the time to output goes
  --out FOLDER         writes report.md and a plot for each table
  --check              W1 on the boxes with a target, and the policies that it names; ends with 1 when one is missed
  --traces FOLDER      where the request traces lie (also BERTH_TRACES); default ../shared/traces beside the checkout
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      workload: { type: 'string' },
      hardware: { type: 'string' },
      seeds: { type: 'string', default: '5' },
      only: { type: 'string', default: '' },
      sizing: { type: 'boolean', default: false },
      oracles: { type: 'boolean', default: false },
      waits: { type: 'boolean', default: false },
      out: { type: 'string' },
      check: { type: 'boolean', default: false },
      traces: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (values.traces !== undefined) process.env['BERTH_TRACES'] = values.traces;
  const missing = whyNoTraces();
  if (missing !== undefined) {
    console.error(missing);
    return 2;
  }
  const seeds = Number(values.seeds);
  if (!Number.isInteger(seeds) || seeds < 1) {
    console.error(`--seeds must be a whole number from 1 on, not ${values.seeds}`);
    return 2;
  }
  const workloads = values.check ? ['W1' as const] : chosen(values.workload, WORKLOADS);
  const hardware = values.check
    ? TARGET_HARDWARE
    : chosen(values.hardware, Object.keys(HARDWARE) as HardwareName[]);
  const runs: Run[] = [];
  for (const name of workloads) {
    for (const box of hardware) {
      const here: Run[] = [];
      for (let seed = 1; seed <= seeds; seed++) {
        const all = values.sizing ? sizingPolicies(seed) : values.oracles ? oracles() : policies();
        const wanted = all.filter(({ name: policy }) =>
          values.check ? isCompared(policy) : policy.includes(values.only),
        );
        here.push(...(await runAll(name, box, seed, wanted, !values.check)));
      }
      console.log(markdown(here));
      if (values.waits) console.log(waitsTable(here));
      runs.push(...here);
    }
  }
  if (values.out !== undefined) write(values.out, runs);
  if (!values.check) return 0;
  const results = verdicts(runs);
  for (const { what, figure, met, foreseenMisses } of results) {
    const beyond =
      !met && foreseenMisses === true ? ' (missed by those that know the calls to come too)' : '';
    console.log(`${met ? 'reached' : 'MISSED '}  ${what}: ${figure}${beyond}`);
  }
  return results.every((v) => v.met) ? 0 : 1;
}

function chosen<T extends WorkloadName | HardwareName>(
  text: string | undefined,
  known: readonly T[],
): readonly T[] {
  if (text === undefined) return known;
  return text.split(',').map((name) => {
    const found = known.find((k) => k === name);
    if (found === undefined) throw new Error(`"${name}" is none of ${known.join(', ')}`);
    return found;
  });
}

function write(folder: string, runs: readonly Run[]): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'report.md'), markdown(runs));
  const places = new Map<string, Run[]>();
  for (const run of runs) {
    const key = `${run.workload}-${run.hardware}`;
    places.set(key, [...(places.get(key) ?? []), run]);
  }
  for (const [key, here] of places) {
    const rows = rowsOf(here);
    const title = `${rows[0]?.workload ?? ''} on ${rows[0]?.hardware ?? ''}`;
    writeFileSync(join(folder, `${key.replace(/[^\w-]/g, '-')}.svg`), plot(title, rows));
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  console.error(USAGE);
  process.exitCode = 2;
}

import { describe, expect, it } from 'vitest';
import { programWithDelay } from '#placement/simulate/caching-program.js';
import { solve } from './bound.js';
import { oracles, policies, sizingPolicies } from './policies.js';
import { markdown } from './report.js';
import { plot } from './plot.js';
import { rowsOf } from './report.js';
import { scenarioOf, type Run } from './runs.js';
import { whyNoTraces } from './traces.js';
import { WORKLOADS } from './workloads.js';

const missing = whyNoTraces();
if (missing !== undefined) console.warn(`SKIPPED, the placement bench on real traces: ${missing}`);

/** A part of each workload that is done in seconds. */
const part = { seed: 1, fromSeconds: 36_000, toSeconds: 41_000 } as const;
const whole = new Set(['W3', 'W4', 'W5', 'W6']);
const options = (
  name: string,
): { readonly seed: number; readonly fromSeconds?: number; readonly toSeconds: number } =>
  whole.has(name) ? { seed: 1, toSeconds: 3000 } : part;

describe.skipIf(missing !== undefined)('the placement bench on the traces', () => {
  it.each(WORKLOADS)('serves every call of %s that it does not refuse, above the bound', async (name) => {
    const scenario = scenarioOf(name, '48', options(name));
    expect(scenario.calls.length).toBeGreaterThan(10);
    for (const policy of policies()) {
      const { result, metrics } = policy.run(scenario);
      expect(result.calls.length, policy.name).toBe(scenario.calls.length);
      expect(new Set(result.calls.map((c) => c.call.index)).size).toBe(scenario.calls.length);
      if (policy.name !== "ModelMesh's rule") expect(metrics.refused, policy.name).toBe(0);
      else continue;
      const bound = await solve(programWithDelay(scenario, metrics.longestWaitSeconds + 0.001));
      expect(bound, policy.name).toBeLessThanOrEqual(metrics.loadSeconds + 1e-6);
    }
  });

  it('gives the same run again, on several boxes too', () => {
    const [berth] = policies();
    const run = (): unknown => berth?.run(scenarioOf('W1', 'mixed', part)).result;
    expect(run()).toEqual(run());
  });

  it('draws the same calls for every policy and others for another seed', () => {
    const calls = (seed: number): unknown => scenarioOf('W1', '96', { ...part, seed }).calls;
    expect(calls(1)).toEqual(calls(1));
    expect(calls(1)).not.toEqual(calls(2));
  });

  it('spares loading by what an oracle knows under the very rules of Berth', () => {
    const scenario = scenarioOf('W1', '96', { ...part, toSeconds: 46_000 });
    const loading = (name: string): number | undefined =>
      oracles()
        .find((policy) => policy.name === name)
        ?.run(scenario).metrics.loadSeconds;
    const [berth = 0, rates = Infinity, next = Infinity] = [
      'Berth',
      'Berth, true rates known',
      'Berth, next calls known',
    ].map(loading);
    expect(rates).toBeLessThan(berth);
    expect(next).toBeLessThan(rates);
  });

  it('loses no call to sizes that are 15 % off without saying so', () => {
    const scenario = scenarioOf('W1', '48', part);
    for (const policy of sizingPolicies(1)) {
      const { metrics } = policy.run(scenario);
      expect(metrics.calls, policy.name).toBe(scenario.calls.length);
    }
  });

  it('never prints a latency without the count of refused calls', () => {
    const scenario = scenarioOf('W6', '48', options('W6'));
    const runs = policies().map((policy): Run => ({
      workload: 'W6',
      hardware: '48',
      seed: 1,
      policy: policy.name,
      metrics: policy.run(scenario).metrics,
      boundSeconds: 1,
      delayedBoundSeconds: 1,
    }));
    const [head] = markdown(runs)
      .split('\n')
      .filter((line) => line.startsWith('| policy'));
    expect(head).toMatch(/^\| policy \| refused \| to output/);
    expect(plot('W6', rowsOf(runs))).toContain('hollow: it refused calls');
  });
});

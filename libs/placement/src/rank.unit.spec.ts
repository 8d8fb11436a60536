import { describe, expect, it } from 'vitest';
import { backOffSeconds } from './failures.js';
import { type Admitted, rank } from './rank.js';
import type { Goal } from './settings.js';

/** What ranking looks at of an admitted plan: its quality, its time (T), the losses of whom it displaces (R, E). */
function plan(
  name: string,
  q: number,
  seconds: number | undefined,
  losses: readonly number[] = [],
  estimated = false,
) {
  const output = seconds === undefined ? {} : { outputSeconds: seconds };
  const verdict = {
    kind: 'admitted',
    reason: name,
    plan: { shape: { q } },
    victims: losses.map((lossSeconds) => ({ lossSeconds })),
    forecast: { readyInSeconds: 0, loadSeconds: 0, estimated, ...output },
  };
  return verdict as unknown as Admitted;
}

const order = (goal: Goal, plans: readonly Admitted[], latencyTargetSeconds?: number) =>
  rank(plans, { goal, ...(latencyTargetSeconds === undefined ? {} : { latencyTargetSeconds }) }).map(
    (v) => v.reason,
  );

describe('the choice (table of the rules)', () => {
  it('quality: the best artifact, then time and loss together, then time', () => {
    const plans = [
      plan('lower', 1, 5),
      plan('costly', 0, 6, [9]),
      plan('slower', 0, 10),
      plan('as dear', 0, 8, [2]),
    ];
    expect(order('quality', plans)).toEqual(['as dear', 'slower', 'costly', 'lower']);
  });

  it('fast: time, then quality, then loss', () => {
    const plans = [plan('slow', 0, 9), plan('poor', 2, 5), plan('dear', 1, 5, [3]), plan('best', 1, 5)];
    expect(order('fast', plans)).toEqual(['best', 'dear', 'poor', 'slow']);
  });

  it('resident: quality, then how many go, then time and loss', () => {
    const plans = [
      plan('two go', 0, 1, [0, 0]),
      plan('one goes', 0, 5, [9]),
      plan('none goes', 0, 99),
      plan('worse', 1, 1),
    ];
    expect(order('resident', plans)).toEqual(['none goes', 'one goes', 'two go', 'worse']);
  });

  it('quality leaves out what takes more than three times the fastest known', () => {
    expect(order('quality', [plan('in RAM', 0, 31), plan('on the card', 1, 10)])).toEqual(['on the card']);
    expect(order('quality', [plan('in RAM', 0, 30), plan('on the card', 1, 10)])[0]).toBe('in RAM');
  });

  it('plans of unknown time keep the order of the ladder behind the known', () => {
    const plans = [plan('unknown 1', 0, undefined), plan('unknown 2', 0, undefined), plan('known', 0, 50)];
    expect(order('fast', plans)).toEqual(['known', 'unknown 1', 'unknown 2']);
    expect(order('quality', plans)).toEqual(['known', 'unknown 1', 'unknown 2']);
  });

  it('plans measured above the latency target come after all within it; an estimate is not held against it', () => {
    const plans = [plan('measured', 0, 12), plan('estimated', 1, 12, [], true), plan('within', 2, 9)];
    expect(order('quality', plans, 10)).toEqual(['estimated', 'within', 'measured']);
  });
});

it('the back-off doubles from 30 s to 600 s', () => {
  expect([1, 2, 3, 5, 6, 60].map(backOffSeconds)).toEqual([30, 60, 120, 480, 600, 600]);
});

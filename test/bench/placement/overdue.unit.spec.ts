import { describe, expect, it } from 'vitest';
import { modelKey } from '#domain/ids.js';
import type { CallOutcome, LoadOutcome, Scenario } from '#placement/simulate/model.js';
import { hardwareOf, loadModel, simModel } from './hardware.js';
import { overdueRule } from './overdue.js';

const scenario: Scenario = {
  models: ['a', 'b', 'c'].map((name) => simModel(modelKey(name), 10)),
  boxes: hardwareOf('one', [24]).boxes,
  calls: [],
  load: loadModel([1], 1),
};
const call = (index: number, model: number, atS: number, startS: number): CallOutcome => ({
  call: { index, model, atMs: atS * 1000, promptTokens: 1, outputTokens: 1 },
  startMs: startS * 1000,
  endMs: (startS + 10) * 1000,
});
const load = (model: number, orderedS: number): LoadOutcome => ({
  model,
  box: 0,
  from: 'disk',
  orderedMs: orderedS * 1000,
  startMs: orderedS * 1000,
  endMs: (orderedS + 10) * 1000,
  fileBytes: 1,
  failed: false,
});
const rule = (calls: readonly CallOutcome[], loads: readonly LoadOutcome[]) =>
  overdueRule(scenario, { calls, loads }, 60);

describe('the overdue rule', () => {
  it('lets an overdue call wait for those that came before it, and its own load', () => {
    const { overtakes, worstExcessSeconds } = rule(
      [call(0, 1, 0, 80), call(1, 0, 5, 100)],
      [load(1, 70), load(0, 90)],
    );
    expect(overtakes).toBe(0);
    expect(worstExcessSeconds).toBeLessThanOrEqual(0);
  });

  it('counts a load that was ordered past an overdue call', () => {
    expect(rule([call(0, 0, 0, 100), call(1, 1, 50, 80)], [load(1, 70), load(0, 90)]).overtakes).toBe(1);
  });

  it('lets what was ordered before the call was overdue be done', () => {
    expect(rule([call(0, 0, 0, 100), call(1, 1, 50, 80)], [load(1, 59), load(0, 90)]).overtakes).toBe(0);
  });

  it('counts no load that was ordered while an overdue call waited for a slot of the resident that served it', () => {
    expect(rule([call(0, 0, 0, 90), call(1, 1, 50, 80)], [load(0, 40), load(1, 70)]).overtakes).toBe(0);
  });

  it('counts a load past an overdue call whose model has to come again', () => {
    const loads = [load(0, 40), load(1, 70), load(0, 80)];
    expect(rule([call(0, 0, 0, 95), call(1, 1, 50, 85)], loads).overtakes).toBe(1);
  });

  it('sees a wait during which nothing went on', () => {
    expect(rule([call(0, 0, 0, 300)], [load(0, 290)]).worstExcessSeconds).toBeGreaterThan(0);
  });
});
